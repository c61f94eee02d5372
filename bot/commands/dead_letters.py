"""`/deadletters`: messages whose turn failed again and again; operators retry or drop them.

Shows when, which chat, what kind of error, and the reference that the person was given; never what
was said.
"""

import re
from collections.abc import Mapping

import structlog

from bot.commands.paged_list import ListChange, ListContent, ListEntry
from bot.commands.sentences import Sentences
from bot.telegram.updates import ButtonPress
from memory.erasure.confirmations import NotConfirmed
from memory.queue.dead_letters import DeadLetter, DeadLetters
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_CODE = re.compile(r"(c:-?\d+:\d+)\|(-?\d+)", re.ASCII)
"""Conversation and id of a letter."""


class DeadLetterList:
    """Lists dead letters, puts them back or drops them."""

    verb = "dead"
    actions: Mapping[str, str] = {"r": "buttons.retry", "d": "buttons.drop"}

    def __init__(self, letters: DeadLetters, sentences: Sentences) -> None:
        self._letters = letters
        self._sentences = sentences

    async def content(self, language: str, _: Scope) -> ListContent:
        """Return the newest letters of all conversations."""
        entries = [self._entry(language, letter) for letter in await self._letters.listed()]
        empty = () if entries else (self._sentences.text(language, "dead_letters.none"),)
        return ListContent("dead_letters.listed", entries, above=empty)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code."""
        del pressed, conversation  # all of it is the operators'
        if not _CODE.fullmatch(code):
            raise NotConfirmed("unknown")

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Put a letter back or drop it."""
        if action not in self.actions:
            raise NotConfirmed("unknown")
        tag, _, id_ = code.partition("|")
        change = self._letters.retry if action == "r" else self._letters.drop
        was_there = await change(Scope(tag), id_)
        log.info(
            "dead letter", here=conversation.tag, letter=code, action=action, was_there=was_there
        )
        return ListChange()

    def _entry(self, language: str, letter: DeadLetter) -> ListEntry:
        values = {
            "chat": letter.conversation.chat_id,
            "when": self._sentences.moment(language, letter.at),
            "error": letter.error,
            "reference": letter.id,
        }
        return ListEntry(f"{letter.conversation.tag}|{letter.id}", "dead_letters.line", values)
