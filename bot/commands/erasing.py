"""`/clear` erases one conversation, `/forget` a person everywhere or as a reply one message.

Each asks first. A confirmation acts at once, without waiting for a turn.
"""

from collections.abc import Awaitable, Callable, Sequence

import structlog

from bot.commands.access import call_context_of
from bot.commands.bot_command import Answer
from bot.commands.receipts import Receipts, counts
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.edits import is_about
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.call_context import CallContext, is_first_party
from memory.limits.stats import count_conversation
from memory.memory import Memory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

Deleting = Callable[[CallContext], Awaitable[None]]
"""Is told that a conversation is about to be erased."""


def all_in_order(hooks: Sequence[Deleting]) -> Deleting:
    """Return what tells all of these, one after the other."""

    async def tell_all(call_context: CallContext) -> None:
        for hook in hooks:
            await hook(call_context)

    return tell_all


class ClearCommand:
    """Asks, and erases at once when the question is confirmed, without waiting for a turn."""

    def __init__(self, memory: Memory, deleting: Deleting, sentences: Sentences) -> None:
        self._memory = memory
        self._confirmations = memory.confirmations
        self._deleting = deleting
        self._sentences = sentences

    async def ask(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before this conversation is erased."""
        counted = await count_conversation(self._memory.client, self._memory.keys, conversation)
        stored = counted.messages
        nonce = await self._confirmations.ask(conversation, "clear", asked.sender.id)
        key = "clear.ask_group" if asked.is_group else "clear.ask"
        language = asked.sender.language
        return Answer(self._sentences.ask(language, key, f"clear:{nonce}", messages=stored))

    async def clear(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Erase the conversation; in a group any of its admins may confirm."""
        as_admin = pressed.is_group
        asker = None if as_admin else pressed.sender.id
        await self._confirmations.check(here, nonce, "clear", asker)
        await self._deleting(call_context_of(pressed, here))
        receipt = await self._memory.forgetting.clear(
            here, nonce, pressed.sender.id, pressed.update_id, as_admin=as_admin
        )
        values = {**counts(receipt), "waiting": receipt.waiting}
        return self._sentences.say(pressed.sender.language, "clear.done", **values)


class ForgetCommand:
    """Asks, and erases when the question is confirmed."""

    def __init__(self, memory: Memory, receipts: Receipts, sentences: Sentences) -> None:
        self._confirmations = memory.confirmations
        self._forgetting = memory.forgetting
        self._mailbox = memory.mailbox
        self._receipts = receipts
        self._sentences = sentences

    async def ask(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before a person is erased everywhere; as a reply, before that message is."""
        if asked.replied_to:
            return await self._ask_for_message(asked, conversation)
        nonce = await self._confirmations.ask(conversation, "forget", asked.sender.id)
        return Answer(self._sentences.ask(asked.sender.language, "forget.ask", f"forget:{nonce}"))

    async def forget(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Begin to erase the person; the receipt follows when all conversations are done."""
        await self._confirmations.check(here, nonce, "forget", pressed.sender.id)
        return await self._receipts.start(pressed, nonce, "forget", pressed.sender.id, "forget.")

    async def delete_message(
        self, pressed: ButtonPress, here: Scope, nonce: str
    ) -> tuple[Part, ...]:
        """Erase one message and what was learned from it."""
        about = await self._confirmations.check(here, nonce, "messages", pressed.sender.id)
        asked_about, _, message_id = about.partition("@")
        seqs = {int(seq) for seq in asked_about.split(",") if seq}
        if message_id:
            # Since the question was asked, the message may have been edited and stored again.
            id_ = int(message_id)
            await self._mailbox.drop(here, lambda entry: is_about(id_, entry.body))
            found = await self._forgetting.find_exchange(here, id_, with_tasks=True)
            seqs.update(message.seq for message in found)
        receipt = await self._forgetting.erase_messages(here, seqs, nonce)
        if receipt.left:
            await self._mailbox.wake(here)
        language = pressed.sender.language
        return self._sentences.say(language, "forget.message_done", **counts(receipt))

    async def _ask_for_message(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before one message is erased: one's own, in private also one of ours."""
        language = asked.sender.language
        replied_to = asked.replied_to
        found = await self._forgetting.find_exchange(conversation, replied_to, with_tasks=True)
        if not found:
            return Answer(self._sentences.say(language, "forget.message_unknown"))
        if asked.is_group and not is_first_party(asked.sender.id, [found[0].sender_id]):
            log.info("message of another person not forgotten", user=asked.sender.id)
            return Answer(self._sentences.say(language, "forget.message_not_yours"))
        seqs = ",".join(str(message.seq) for message in found)
        about = f"{seqs}@{asked.replied_to}"
        nonce = await self._confirmations.ask(conversation, "messages", asked.sender.id, about)
        key = "forget.message_ask" if found[0].sender_id else "forget.answer_ask"
        return Answer(self._sentences.ask(language, key, f"delete_message:{nonce}"))
