"""Asks before something is kept that may have been put into the model's mouth; hears the answer."""

import re
from collections.abc import Sequence
from dataclasses import replace
from secrets import token_urlsafe

import structlog

from bot.commands.buttons import Act
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.telegram.inbound import Pressed
from memory.keys import Conversation
from memory.learning.consent import Consent
from memory.notebook.writes import Remember, ToolWrite
from memory.protocol.erasure import NotConfirmed

log = structlog.get_logger(__name__)

_YES, _NO = "yes", "no"
_NONCE_BYTES = 12
_NONCE = re.compile(r"[\w-]{16}", re.ASCII)


def named(writes: Sequence[ToolWrite]) -> list[ToolWrite]:
    """Return the writes, each that needs an answer with a name for its buttons."""
    return [
        replace(write, nonce=token_urlsafe(_NONCE_BYTES))
        if isinstance(write, Remember) and write.asks_first
        else write
        for write in writes
    ]


def questions(sentences: Sentences, language: str, writes: Sequence[ToolWrite]) -> tuple[Part, ...]:
    """Return a question with two buttons for each write that needs an answer."""
    return tuple(
        replace(part, buttons=(_row(sentences, language, write.nonce),))
        for write in writes
        if isinstance(write, Remember) and write.nonce
        for part in sentences.say(language, "consent.ask", text=write.text)[-1:]
    )


def _row(sentences: Sentences, language: str, nonce: str) -> tuple[Button, ...]:
    return (
        Button(sentences.text(language, "buttons.remember"), f"{_YES}:{nonce}"),
        Button(sentences.text(language, "buttons.dont_remember"), f"{_NO}:{nonce}"),
    )


class ConsentButtons:
    """Acts on the answers; only whoever was asked may give one."""

    def __init__(self, consent: Consent, sentences: Sentences) -> None:
        self._consent = consent
        self._sentences = sentences

    @property
    def acts(self) -> dict[str, Act]:
        """Return the acts by the buttons' first words."""
        return {_YES: self._yes, _NO: self._no}

    async def _yes(
        self, pressed: Pressed, conversation: Conversation, nonce: str
    ) -> tuple[Part, ...]:
        return await self._answer(pressed, conversation, nonce, keep=True)

    async def _no(
        self, pressed: Pressed, conversation: Conversation, nonce: str
    ) -> tuple[Part, ...]:
        return await self._answer(pressed, conversation, nonce, keep=False)

    async def _answer(
        self, pressed: Pressed, conversation: Conversation, nonce: str, *, keep: bool
    ) -> tuple[Part, ...]:
        if not _NONCE.fullmatch(nonce):  # any part of a reply would look like one on its way
            raise NotConfirmed("unknown")
        kept = await self._consent.answer(conversation, nonce, pressed.sender.id, keep=keep)
        log.info("consent answered", kept=kept)
        key = "consent.kept" if kept else "consent.not_kept"
        return self._sentences.say(pressed.sender.language, key)
