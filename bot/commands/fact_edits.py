"""Questions about facts, and what people answer: a yes, a no, or another wording.

It says what tools remember and forget, and asks first if the rule wants it.

A button asks for the new wording. The reply to that question is taken at once, without a turn, and
does not enter the history. A feature asks for other words of a message in the same way; the reply
then counts as an edit of that message.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import orjson
import structlog

from bot.commands.access import Access, asker_of
from bot.commands.bot_command import ANYTHING, Answer, BotCommand, ButtonHandler
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, Parts
from bot.telegram.chat import SHORT_WAIT_S, Chat, Destination
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.context import may_change
from memory.behaviors.statements import unfit
from memory.erasure.correcting import present_fact
from memory.erasure.questions import NotConfirmed
from memory.learning.tool_writes import find_waiting
from memory.memory import Memory
from memory.scopes.changes import senders_of
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import place_of, with_shown_id
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.writes import ForgetRecord, Keep, Remember, SetDomain, StillTrue, ToolWrite
from memory.store.keys import Scope
from memory.text.untrusted_text import one_line

log = structlog.get_logger(__name__)

EDIT = "e"  # the action of a list that asks for the new wording of a fact

_COMMAND = "edited"  # what a reply becomes; its text is the outcome. From a person it does nothing

_NONCE = "edit:"  # begins a nonce; the id of our question follows: a reply tells us nothing else

_CARD = "card:"  # before the nonce of a question about a learned fact; others are about a fact's id

OF_MESSAGE = "heard:"  # before the id and the time of a message: the reply counts as an edit of it

_OUTCOMES: Mapping[str, str] = {
    each: f"memory.{each}" for each in ("edited", "edit_gone", "edit_unfit", "edit_not_yours")
} | {"edit_off_record": "off.no_memory"}

YES, NO, REWORD = "yes", "no", "reword"  # verbs of the buttons; the last one asks for other words
_MAX_DOMAIN_CHARS = 2_000  # more than `MAX_DOMAIN_BYTES`: a person sees all that they agree to

_LABELS: Mapping[type[ToolWrite], tuple[str, str]] = {
    ForgetRecord: ("forget", "dont_forget"),
    StillTrue: ("still", "not_still"),
}


class FactEdits:
    """Hears whether a fact is kept or forgotten; asks for new wordings and takes them."""

    def __init__(self, memory: Memory, access: Access, chat: Chat, sentences: Sentences) -> None:
        self._access = access
        self._questions = memory.questions
        self._correcting = memory.correcting
        self._scopes = memory.scopes
        self._tool_writer = memory.tool_writer
        self._resolve = memory.mailbox.resolve
        self._chat = chat
        self._sentences = sentences
        buttons: Mapping[str, ButtonHandler] = {
            YES: partial(self.answer_about, agrees=True),
            NO: partial(self.answer_about, agrees=False),
            REWORD: self.reword,
        }
        self.command = BotCommand(_COMMAND, self.answer, "unlisted", buttons, takes=ANYTHING)

    async def answer_about(
        self, pressed: ButtonPress, conversation: Scope, nonce: str, *, agrees: bool
    ) -> Parts:
        """Remember or forget what waits for a yes. Only the person who was asked may answer.

        Off the record a yes changes nothing, and the question stays.
        """
        if agrees:
            await self._access.check_on_record(conversation)
        asker = asker_of(pressed, self._chat)
        answer = await self._tool_writer.answer(conversation, nonce, asker, agrees=agrees)
        log.info("consent answered", answer=answer)
        return self._sentences.say(pressed.sender.language, f"consent.{answer}")

    async def ask(self, pressed: ButtonPress, conversation: Scope, fact_id: int) -> None:
        """Ask a person who may change the fact for its new wording; they have an hour.

        Raise `NotConfirmed` if there is no such fact. After a crash the question may come twice.
        """
        await self._access.check_on_record(conversation)
        facts, fact = await self._found(conversation, fact_id)
        about = str(with_shown_id(facts.scope, fact).id)
        await self.ask_for_words(pressed, conversation, "memory.edit_ask", about, fact.text)

    async def reword(self, pressed: ButtonPress, conversation: Scope, nonce: str) -> Parts:
        """Ask for other words for a learned fact that waits for a yes; the card stays as it is."""
        await self._access.check_on_record(conversation)
        here = await self._scopes.read(conversation)
        asked, _ = find_waiting(here, nonce)
        if asked.answer or not isinstance(asked.write, Remember):
            raise NotConfirmed("unknown")
        if asked.write.sender_id != pressed.sender.id:
            raise NotConfirmed("not_yours")
        card, text = _CARD + nonce, asked.write.text
        await self.ask_for_words(pressed, conversation, "memory.edit_ask", card, text)
        return ()

    async def ask_for_words(
        self, pressed: ButtonPress, conversation: Scope, key: str, about: str, text: str = ""
    ) -> None:
        """Ask with the sentence `key`, which gets the `text` so far; `take` hears the reply."""
        [part] = self._sentences.say(pressed.sender.language, key, text=text)
        async for wait_s in self._chat.waits(pressed.chat_id, SHORT_WAIT_S):
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
        if about.startswith(OF_MESSAGE):
            message_id, sent_at = map(int, about.removeprefix(OF_MESSAGE).split("."))
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
        if await self._access.is_off_record(conversation):
            return "edit_off_record"
        text = one_line(said.text)
        if unfit(text):
            return "edit_unfit"
        asker = asker_of(said, self._chat)
        if about.startswith(_CARD):
            card = about.removeprefix(_CARD)
            await self._tool_writer.answer(conversation, card, asker, agrees=True, text=text)
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


def questions(
    sentences: Sentences, language: str, writes: Sequence[ToolWrite], *, are_cards: bool = False
) -> Parts:
    """Return a question with two buttons for each write that needs an answer.

    `are_cards`: the facts were learned, and a third button asks for other words.
    """
    asked = []
    for write in (each for each in writes if each.nonce):
        yes, no = _LABELS.get(type(write), ("remember", "dont_remember"))
        row = (
            Button(sentences.text(language, f"buttons.{yes}"), f"{YES}:{write.nonce}"),
            Button(sentences.text(language, f"buttons.{no}"), f"{NO}:{write.nonce}"),
        )
        reword = Button(sentences.text(language, "buttons.edit"), f"{REWORD}:{write.nonce}")
        part = _described(sentences, language, "ask", write)
        asked.append(replace(part, buttons=(row, (reword,)) if are_cards else (row,)))
    return tuple(asked)


def confirmations(sentences: Sentences, language: str, writes: Sequence[ToolWrite]) -> Parts:
    """Return a line for each fact that is remembered or forgotten without a question.

    Domain fields are the operator's: their tools say themselves what they did.
    """
    return tuple(
        _described(sentences, language, "did", write)
        for write in writes
        if not write.asks_first and not isinstance(write, SetDomain | Keep)
    )


def _described(sentences: Sentences, language: str, how: str, write: ToolWrite) -> Part:
    match write:
        case ForgetRecord():
            key, text = f"{how}_forget", write.old_text
        case StillTrue():
            key, text = "ask_still", write.old_text
        case Remember():
            key, text = f"{how}_replace" if write.old_text else how, write.text
        case SetDomain():
            key, text = how, _fields(write)
        case Keep():
            key, text = how, write.text
    old = write.old_text if isinstance(write, Remember) else ""
    return sentences.say(language, f"consent.{key}", text=text, old=old)[-1]


def _fields(write: SetDomain) -> str:
    try:
        fields = dict(orjson.loads(write.fields))
    except (TypeError, ValueError):
        return write.fields[:_MAX_DOMAIN_CHARS]
    return "; ".join(f"{name}: {value}" for name, value in fields.items())[:_MAX_DOMAIN_CHARS]
