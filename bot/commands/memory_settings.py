"""`/memory off`, `on`, `quiet`, `auto`, `ask`, `explicit`, and the words of features."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.telegram.updates import IncomingMessage
from memory.behaviors.learning_mode import MODES, LearningModes
from memory.memory import Memory
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_WORDS = ("off", "on", "quiet", *MODES)
_MARKS = {"hide marks": True, "show marks": False}


@dataclass(frozen=True, slots=True)
class MemoryWords:
    """A setting of memory that a feature brings.

    `/memory <word>` calls `change`, which returns the key of what to say then. `shown` returns the
    key of a line below the list, "" for none; it gets the conversation and the scope of its facts.
    """

    words: Sequence[str]
    change: Callable[[Scope, str], Awaitable[str]]
    shown: Callable[[Scope, ScopeMemory], str]


class MemorySettings:
    """Changes the settings; in a group only its administrators may.

    `words` are said behind the command. `codes` are what the buttons below the list change: a
    button says what it does, and a word toggles.
    """

    def __init__(
        self,
        memory: Memory,
        access: Access,
        sentences: Sentences,
        switches: Sequence[MemoryWords] = (),
    ) -> None:
        self._of_features = {word: each for each in switches for word in each.words}
        self.words = (*_WORDS, *self._of_features)
        self.codes = (*self.words, *_MARKS)
        self._switch = memory.switch
        self._modes = LearningModes(memory.scopes)
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Change the setting that the argument names, and say what it is now."""
        language, argument = asked.sender.language, asked.text
        if refusal := await self._access.refusal(asked, "memory"):
            return refusal
        key = await self.change(conversation, argument, asked.update_id)
        return Answer(self._sentences.say(language, key))

    async def change(self, conversation: Scope, to: str, update_id: int) -> str:
        """Change one of the settings `codes`; return the key of what to say about it."""
        key = f"memory.mode_{to}"
        match to:
            case "off" | "on":
                switch = self._switch.turn_off if to == "off" else self._switch.turn_on
                await switch(conversation)
                key = f"memory.turned_{to}"
            case "quiet":
                is_quiet = await self._switch.toggle_quiet(conversation, update_id)
                key = "memory.marks_off" if is_quiet else "memory.marks_on"
            case "hide marks" | "show marks":
                is_quiet = _MARKS[to]
                await self._switch.set_quiet(conversation, is_quiet=is_quiet)
                key = "memory.marks_off" if is_quiet else "memory.marks_on"
            case "auto" | "ask" | "explicit":
                await self._modes.set_mode(conversation, to)
            case _:
                key = await self._of_features[to].change(conversation, to)
        log.info("memory switched", to=to)
        return key
