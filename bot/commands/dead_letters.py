"""`/deadletters`: what was set aside because its turns failed; admins put it back or drop it.

Shows when, which chat, what kind of error, and the reference that the person was told; never what
was said.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

import structlog

from bot.commands.general import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.reply.render import render
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.queue.dead_letters import DeadLetter, DeadLetters
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

VERB = "dead"
"""First word of the buttons' callback data: `dead:<r or d>:<conversation>|<letter>`."""

_LISTED = 8
_BEHIND = re.compile(r"([rd]):(c:-?\d+:\d+)\|(-?\d+)", re.ASCII)


class DeadLetterCommand:
    """Lists letters, each with two buttons; whoever calls `show` has checked who asks."""

    def __init__(self, letters: DeadLetters, sentences: Sentences, admins: frozenset[int]) -> None:
        self._letters = letters
        self._sentences = sentences
        self._admins = admins

    async def show(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._list(asked.sender.language))

    async def press(self, pressed: ButtonPress, here: Scope, behind: str) -> tuple[Part, ...]:
        """Put a letter back or drop it, and return the list as it is then; raise `NotConfirmed`."""
        if pressed.is_group or pressed.sender.id not in self._admins:
            raise NotConfirmed("not_yours")
        read = _BEHIND.fullmatch(behind)
        if read is None:
            raise NotConfirmed("unknown")
        what, tag, id_ = read.groups()
        act = self._letters.retry if what == "r" else self._letters.drop
        was_there = await act(Scope(tag), id_)
        letter = f"{tag}|{id_}"
        log.info("dead letter", here=here.tag, letter=letter, action=what, was_there=was_there)
        return await self._list(pressed.sender.language)

    async def _list(self, language: str) -> tuple[Part, ...]:
        found = await self._letters.listed()
        if not found:
            return self._sentences.say(language, "dead_letters.none")
        shown = list(enumerate(found[:_LISTED], start=1))
        lines = (self._line(language, number, letter) for number, letter in shown)
        title = self._sentences.text(language, "dead_letters.listed", count=len(found))
        *_, last = render("\n\n".join((title, *lines)))
        return (replace(last, buttons=self._rows(language, shown)),)

    def _line(self, language: str, number: int, letter: DeadLetter) -> str:
        return self._sentences.text(
            language,
            "dead_letters.line",
            number=number,
            chat=letter.conversation.chat_id,
            when=self._sentences.moment(language, letter.at),
            error=letter.error,
            reference=letter.id,
        )

    def _rows(
        self, language: str, shown: Sequence[tuple[int, DeadLetter]]
    ) -> tuple[tuple[Button, ...], ...]:
        labels = {
            "r": self._sentences.text(language, "buttons.retry"),
            "d": self._sentences.text(language, "buttons.drop"),
        }
        return tuple(
            tuple(
                Button(f"{label} {number}", f"{VERB}:{what}:{letter.conversation.tag}|{letter.id}")
                for what, label in labels.items()
            )
            for number, letter in shown
        )
