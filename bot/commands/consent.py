"""Says what tools remember and forget; asks first if the rule wants it, and hears the answer."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from secrets import token_urlsafe

import orjson
import structlog

from bot.commands.access import Access, asker_of
from bot.commands.bot_command import ButtonHandler
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress
from memory.erasure.confirmations import NotConfirmed
from memory.learning.consent import Consent
from memory.scopes.writes import (
    ForgetRecord,
    Keep,
    Remember,
    SetDomain,
    StillTrue,
    ToolWrite,
)
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_YES, _NO = "yes", "no"
REWORD = "reword"
"""The verb of the button that asks for other words."""
_NONCE_BYTES = 12
NONCE = re.compile(r"[\w-]{16}", re.ASCII)
_MAX_DOMAIN_CHARS = 2_000
"""More than `MAX_DOMAIN_BYTES`: a person sees all that they agree to."""


def with_nonces(writes: Sequence[ToolWrite]) -> list[ToolWrite]:
    """Return the writes; each that needs an answer gets the nonce of its buttons."""
    return [
        replace(write, nonce=write.nonce or token_urlsafe(_NONCE_BYTES))
        if write.asks_first
        else write
        for write in writes
    ]


def questions(sentences: Sentences, language: str, writes: Sequence[ToolWrite]) -> tuple[Part, ...]:
    """Return a question with two buttons for each write that needs an answer."""
    return tuple(
        replace(part, buttons=(_row(sentences, language, write),))
        for write in writes
        if write.nonce
        for part in _described(sentences, language, "ask", write)[-1:]
    )


def cards(sentences: Sentences, language: str, writes: Sequence[Remember]) -> tuple[Part, ...]:
    """Return the questions for facts that were learned, with a third button for other words."""
    shown = questions(sentences, language, writes)
    edit = sentences.text(language, "buttons.edit")
    return tuple(
        replace(part, buttons=(*part.buttons, (Button(edit, f"{REWORD}:{write.nonce}"),)))
        for part, write in zip(shown, writes, strict=True)
    )


def confirmations(
    sentences: Sentences, language: str, writes: Sequence[ToolWrite]
) -> tuple[Part, ...]:
    """Return a line for each fact that is remembered or forgotten without a question.

    Domain fields are the operator's: their tools say themselves what they did.
    """
    return tuple(
        part
        for write in writes
        if not write.asks_first and not isinstance(write, SetDomain | Keep)
        for part in _described(sentences, language, "did", write)[-1:]
    )


def _described(sentences: Sentences, language: str, how: str, write: ToolWrite) -> tuple[Part, ...]:
    """Say exactly what will change ("ask") or has changed ("did")."""
    match write:
        case ForgetRecord():
            return sentences.say(language, f"consent.{how}_forget", text=write.old_text)
        case StillTrue():
            return sentences.say(language, "consent.ask_still", text=write.old_text)
        case Remember(old_text=""):
            return sentences.say(language, f"consent.{how}", text=write.text)
        case Remember():
            key = f"consent.{how}_replace"
            return sentences.say(language, key, text=write.text, old=write.old_text)
        case SetDomain():
            return sentences.say(language, f"consent.{how}", text=_fields(write))
        case Keep():  # the operator's, like domain fields
            return ()


def _fields(write: SetDomain) -> str:
    """Return the fields as text. JSON that is no object sets nothing, and is shown unchanged."""
    try:
        fields = dict(orjson.loads(write.fields))
    except (TypeError, ValueError):
        return write.fields[:_MAX_DOMAIN_CHARS]
    return "; ".join(f"{name}: {value}" for name, value in fields.items())[:_MAX_DOMAIN_CHARS]


def _row(sentences: Sentences, language: str, write: ToolWrite) -> tuple[Button, ...]:
    match write:
        case ForgetRecord():
            yes, no = "forget", "dont_forget"
        case StillTrue():
            yes, no = "still", "not_still"
        case _:
            yes, no = "remember", "dont_remember"
    return (
        Button(sentences.text(language, f"buttons.{yes}"), f"{_YES}:{write.nonce}"),
        Button(sentences.text(language, f"buttons.{no}"), f"{_NO}:{write.nonce}"),
    )


class ConsentButtons:
    """Acts on the answers; only the person who was asked may give one.

    Off the record a yes writes nothing. The question stays for later.
    """

    def __init__(self, consent: Consent, access: Access, chat: Chat, sentences: Sentences) -> None:
        self._consent = consent
        self._access = access
        self._chat = chat
        self._sentences = sentences

    @property
    def handlers(self) -> Mapping[str, ButtonHandler]:
        """Return what the two buttons do, by verb."""
        return {_YES: self._yes, _NO: self._no}

    async def _yes(self, pressed: ButtonPress, conversation: Scope, nonce: str) -> tuple[Part, ...]:
        await self._access.check_on_record(conversation)
        return await self._answer(pressed, conversation, nonce, agrees=True)

    async def _no(self, pressed: ButtonPress, conversation: Scope, nonce: str) -> tuple[Part, ...]:
        return await self._answer(pressed, conversation, nonce, agrees=False)

    async def _answer(
        self, pressed: ButtonPress, conversation: Scope, nonce: str, *, agrees: bool
    ) -> tuple[Part, ...]:
        if not NONCE.fullmatch(nonce):  # else any part of a reply would look like a nonce
            raise NotConfirmed("unknown")
        asker = asker_of(pressed, self._chat)
        answer = await self._consent.answer(conversation, nonce, asker, agrees=agrees)
        log.info("consent answered", answer=answer)
        return self._sentences.say(pressed.sender.language, f"consent.{answer}")
