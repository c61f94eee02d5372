"""All commands of a bot; what stands behind one is read here, and never ignored in silence."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer, BotCommand, ButtonHandler
from bot.commands.general import LISTED
from bot.commands.sentences import Sentences
from bot.reply.parts import utf16_slice
from bot.telegram.updates import IncomingMessage
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_MAX_SHOWN_UNITS = 40
_MAX_WORD_CHARS = 40  # none of our words is longer, so no more of a text is compared with them


class CommandSet:
    """All commands in their order, each behind the checks it declares, and all buttons by verb.

    Menus, /help and the intake follow from the list; `buttons` are those of no command.
    """

    def __init__(
        self,
        commands: Iterable[BotCommand],
        buttons: Iterable[Mapping[str, ButtonHandler]],
        access: Access,
        sentences: Sentences,
    ) -> None:
        self._operators = access.operators
        self._sentences = sentences
        self.listed: Sequence[BotCommand] = [access.guarded(self._checked(c)) for c in commands]
        several = (*(each.buttons for each in self.listed), *buttons)
        self.buttons = {verb: act for each in several for verb, act in each.items()}
        self._handlers = {command.name: command.handler for command in self.listed}

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer a command as its handler does; of an unknown one, name the nearest."""
        if handler := self._handlers.get(asked.command):
            return await handler(asked, conversation)
        audiences = LISTED["group" if asked.is_group else "private"]
        if not asked.is_group and asked.sender in self._operators:
            audiences = (*audiences, "operators")
        names = [each.name for each in self.listed if each.audience in audiences]
        near = nearest(asked.command, names)
        key = "error.near_command" if near else "error.unknown_command"
        return Answer(self._sentences.say(asked.sender.language, key, command=near))

    def _checked(self, command: BotCommand) -> BotCommand:
        """Return a command whose handler gets one of its `words`, what it `takes`, or nothing."""

        async def answer(asked: IncomingMessage, conversation: Scope) -> Answer:
            language, words = asked.sender.language, command.words
            said = " ".join(asked.text.lower().split())
            ours = said if said in words else self._sentences.meaning(said)
            if ours in words:
                return await command.handler(replace(asked, text=ours), conversation)
            if not said or command.takes.fullmatch(asked.text.strip()):
                return await command.handler(asked, conversation)

            log.info("argument not understood", command=command.name)
            near = nearest(said, words)
            more = "did_you_mean" if near else "words" if words else command.name
            more_keys = f"arguments.{more}", f"{more}.usage", "arguments.alone"
            hint = next(filter(self._sentences.has, more_keys))
            own = partial(self._translated, language)
            listed = self._sentences.joined(language, map(own, words))
            shown = utf16_slice(" ".join(asked.text.split()), 0, _MAX_SHOWN_UNITS)
            values = {"command": command.name, "word": own(near), "words": listed, "said": shown}
            return Answer(self._sentences.say(language, "arguments.unknown", hint, **values))

        return replace(command, handler=answer)

    def _translated(self, language: str, word: str) -> str:
        key = f"words.{word}"
        is_ours = self._sentences.has(key)  # of words that mean the same, the first is listed
        return self._sentences.text(language, key).partition(",")[0] if is_ours else word


def nearest(said: str, words: Iterable[str]) -> str:
    """Return the word that somebody may have meant, "" if none is near."""
    # With the default of 0.6, "/language" would be near "/usage", and "/topics" near "/stop".
    near = get_close_matches(said[: _MAX_WORD_CHARS + 1], [*words], n=1, cutoff=0.7)
    return next(iter(near), "")
