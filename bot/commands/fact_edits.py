"""Answers about facts: a yes or a no to what waits for one, or another wording.

A button asks for the new wording, and a reply to that question gives it.

The reply is taken at once, without a turn. It does not enter the history. What a person really said
in a voice message is asked for in the same way; the reply then counts as an edit of that message.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import structlog

from bot.commands.access import Access, asker_of
from bot.commands.bot_command import ANYTHING, Answer, BotCommand, ButtonHandler
from bot.commands.consent import NO, REWORD, YES
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.chat import Chat, Destination
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.context import may_change
from memory.behaviors.statements import unfit
from memory.erasure.correcting import present_fact
from memory.erasure.questions import NotConfirmed
from memory.learning.tool_writes import find_waiting
from memory.memory import Memory
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import place_of, shown
from memory.scopes.provenance import senders_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.writes import Remember
from memory.store.keys import Scope
from memory.text.untrusted_text import one_line

log = structlog.get_logger(__name__)

EDIT = "e"
"""The action of a list that asks for the new wording of a fact."""

_COMMAND = "edited"
"""The command that a reply becomes; its text is the outcome. If a person sends it, nothing happens.
"""

_NONCE = "edit:"
"""Prefix of the nonce. The rest is the id of our question: a reply tells us nothing else."""

_CARD = "card:"
"""Before the nonce of a question about a learned fact; else a question is about a fact's id."""

_HEARD = "heard:"
"""Before the id and the time of a voice message."""

_VOICE = re.compile(r"(\d{1,10})\.(-?\d{1,19})\.(\d{1,10})", re.ASCII)

_OUTCOMES: Mapping[str, str] = {
    each: f"memory.{each}" for each in ("edited", "edit_gone", "edit_unfit", "edit_not_yours")
} | {"edit_off_record": "off.no_memory"}


class FactEdits:
    """Hears whether a fact is kept or forgotten; asks for new wordings and takes them."""

    def __init__(self, memory: Memory, access: Access, chat: Chat, sentences: Sentences) -> None:
        self._access = access
        self._questions = memory.questions
        self._correcting = memory.correcting
        self._scopes = memory.scopes
        self._consent = memory.consent
        self._resolve = memory.mailbox.resolve
        self._chat = chat
        self._sentences = sentences
        buttons: Mapping[str, ButtonHandler] = {
            YES: partial(self.answer_about, agrees=True),
            NO: partial(self.answer_about, agrees=False),
            REWORD: self.reword,
            "misheard": self.misheard,
        }
        self.command = BotCommand(_COMMAND, self.answer, "unlisted", buttons, takes=ANYTHING)

    async def answer_about(
        self, pressed: ButtonPress, conversation: Scope, nonce: str, *, agrees: bool
    ) -> tuple[Part, ...]:
        """Remember or forget what waits for a yes. Only the person who was asked may answer.

        Off the record a yes changes nothing, and the question stays.
        """
        if agrees:
            await self._access.check_on_record(conversation)
        asker = asker_of(pressed, self._chat)
        answer = await self._consent.answer(conversation, nonce, asker, agrees=agrees)
        log.info("consent answered", answer=answer)
        return self._sentences.say(pressed.sender.language, f"consent.{answer}")

    async def ask(self, pressed: ButtonPress, conversation: Scope, fact_id: int) -> None:
        """Ask a person who may change the fact for its new wording; they have an hour.

        Raise `NotConfirmed` off the record or if there is no such fact. After a crash the question
        may come twice.
        """
        await self._access.check_on_record(conversation)
        facts, fact = await self._found(conversation, fact_id)
        await self._ask(pressed, conversation, fact.text, str(shown(facts.scope, fact).id))

    async def reword(
        self, pressed: ButtonPress, conversation: Scope, nonce: str
    ) -> tuple[Part, ...]:
        """Ask for other words for a learned fact that waits for a yes; the card stays as it is."""
        await self._access.check_on_record(conversation)
        here = await self._scopes.read(conversation)
        asked, _ = find_waiting(here, nonce)
        if asked.answer or not isinstance(asked.write, Remember):
            raise NotConfirmed("unknown")
        if asked.write.sender_id != pressed.sender.id:
            raise NotConfirmed("not_yours")
        await self._ask(pressed, conversation, asked.write.text, _CARD + nonce)
        return ()

    async def misheard(
        self, pressed: ButtonPress, conversation: Scope, voice: str
    ) -> tuple[Part, ...]:
        """Ask for what was really said; `voice` is the id of the message, its sender and time."""
        named = _VOICE.fullmatch(voice)
        if named is None:
            raise NotConfirmed("unknown")
        message_id, sender_id, sent_at = named.groups()
        if int(sender_id) != pressed.sender.id:
            raise NotConfirmed("not_yours")
        await self._ask(pressed, conversation, "", f"{_HEARD}{message_id}.{sent_at}")
        return ()

    async def _ask(self, pressed: ButtonPress, conversation: Scope, text: str, about: str) -> None:
        key = "memory.edit_ask" if text else "voice.ask"
        [part] = self._sentences.say(pressed.sender.language, key, text=text)
        async for wait_s in self._chat.waits(pressed.chat_id):
            await asyncio.sleep(wait_s)
        # A full Redis refuses before anything is sent; else each repeat of the press would send.
        await self._questions.ask(conversation, "edit", pressed.sender.id, about, f"{_NONCE}new")
        to = Destination(pressed.chat_id, pressed.topic_id)
        message_id = await self._chat.send(to, replace(part, force_reply=True))
        nonce = f"{_NONCE}{message_id}"
        await self._questions.ask(conversation, "edit", pressed.sender.id, about, nonce)

    async def take(self, said: IncomingMessage) -> IncomingMessage:
        """Edit the fact if a message is the reply to our question; return what is to be answered.

        Other messages are returned unchanged. A repeat changes nothing more. Raise `StoreError` or
        `TelegramError`.
        """
        if not said.is_first_party:
            return said
        conversation = await self._resolve(Scope.of_chat(said.chat_id, said.topic_id))
        try:
            nonce = f"{_NONCE}{said.replied_to}"
            about = await self._questions.check(conversation, nonce, "edit", said.sender.id)
        except NotConfirmed:
            return said
        if about.startswith(_HEARD):
            message_id, sent_at = map(int, about.removeprefix(_HEARD).split("."))
            edited = replace(said, kind="edit", message_id=message_id, sent_at=sent_at)
            return replace(edited, edited_at=said.sent_at, reply=None, replied_to=0)
        try:
            outcome = await self._edit(said, conversation, about)
        except NotConfirmed:
            outcome = "edit_gone"
        log.info("fact edited", outcome=outcome)
        return replace(said, kind="command", command=_COMMAND, text=outcome, reply=None)

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what became of a new wording."""
        key = _OUTCOMES.get(asked.text, "error.unknown_command")
        return Answer(self._sentences.say(asked.sender.language, key))

    async def _edit(self, said: IncomingMessage, conversation: Scope, about: str) -> str:
        """Return what became of the new wording of a fact or of a card, as `_OUTCOMES` names it."""
        if await self._access.is_off_record(conversation):
            return "edit_off_record"
        text = one_line(said.text)
        if unfit(text):
            return "edit_unfit"
        asker = asker_of(said, self._chat)
        if about.startswith(_CARD):
            card = about.removeprefix(_CARD)
            await self._consent.answer(conversation, card, asker, agrees=True, text=text)
            return "edited"
        facts, fact = await self._found(conversation, int(about))
        if not await may_change(asker, senders_of(facts, fact)):
            return "edit_not_yours"
        is_there = await self._correcting.edit_fact(conversation, int(about), text, said.sender.id)
        return "edited" if is_there else "edit_gone"

    async def _found(self, conversation: Scope, fact_id: int) -> tuple[ScopeMemory, Fact]:
        scope, stored_id = place_of(conversation, fact_id)
        facts = await self._scopes.read(scope)
        fact = present_fact(facts, stored_id)
        if fact is None:
            raise NotConfirmed("unknown")
        return facts, fact
