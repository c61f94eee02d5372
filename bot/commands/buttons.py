"""Buttons under our questions: a confirmation acts at once, without waiting for a turn.

Whatever was in flight for what it erases is refused afterwards by the protocol.
"""

import time
from collections.abc import Awaitable, Callable, Mapping

import orjson
import structlog

from bot.commands.access import asker_of
from bot.commands.operators import Target
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.chat import Chat
from bot.telegram.errors import DECLINED, TelegramError
from bot.telegram.late_edits import LateEdits
from bot.telegram.updates import ButtonPress
from bot.turn.hooks import call_context_of
from memory.behaviors.call_context import CallContext, may_change
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.jobs import Finished, Job, Kind
from memory.memory import Memory
from memory.scopes.changes import Receipt
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


_OWN_VERBS = ("keep", "clear", "unsay", "forget", "admin")

Act = Callable[[ButtonPress, Scope, str], Awaitable[tuple[Part, ...]]]
"""Acts on a button by what stands behind its verb, and returns what is shown in its place.

() is nothing more than what is shown already.
"""


class Buttons:
    """Carries out what was confirmed and writes the receipt where the question stood.

    `others` act on further verbs. `deleting` hears of a conversation before it is cleared.
    """

    def __init__(
        self,
        memory: Memory,
        sentences: Sentences,
        telegram: Chat,
        admins: frozenset[int],
        deleting: Callable[[CallContext], Awaitable[None]],
        others: Mapping[str, Act],
    ) -> None:
        self._memory = memory
        self._sentences = sentences
        self._telegram = telegram
        self._late = LateEdits(telegram.edit)
        self._admins = admins
        self._deleting = deleting
        self._others = others

    async def press(self, pressed: ButtonPress) -> None:
        """Act on a button.

        Raise `StoreError` or `TelegramError` with nothing shown, so that Telegram asks again.
        """
        here = await self._memory.mailbox.resolve(Scope.of_chat(pressed.chat_id, pressed.topic_id))
        verb, _, rest = pressed.callback_data.partition(":")
        try:
            shown = await self._act(pressed, here, verb, rest)
        except NotConfirmed as refusal:
            # What is no verb of ours may be any words of whoever pressed.
            is_ours = verb in _OWN_VERBS or verb in self._others
            log.info("button refused", verb=verb if is_ours else "unknown", why=str(refusal))
            if str(refusal) == "not_yours":
                await self._quietly(self._alert(pressed, "clear.not_yours"))
                return
            shown = self._say(pressed, "clear.expired")
        await self._quietly(self._telegram.answer_button(pressed.callback_id))
        for part in shown[:1]:
            await self._quietly(self._late.edit(pressed.chat_id, pressed.message_id, part))

    async def stop(self) -> None:
        """Give up what is still to be shown; pressing again shows it."""
        await self._late.stop()

    async def report(self, finished: Finished) -> None:
        """Write a job's receipt where it was asked for; that it never can be shown is no failure.

        Raise `TelegramError` when it may be shown later.
        """
        key, chat_id, message_id, language = orjson.loads(finished.job.report)
        parts = self._sentences.say(
            language,
            key,
            conversations=finished.conversations,
            **_counts(finished.receipt),
        )
        try:
            await self._telegram.edit(chat_id, message_id, parts[0])
        except DECLINED as error:
            log.warning("receipt not shown", reason=type(error).__name__)

    async def _act(
        self, pressed: ButtonPress, here: Scope, verb: str, rest: str
    ) -> tuple[Part, ...]:
        erasure, user = self._memory.erasure, pressed.sender.id
        nonce, _, detail = rest.partition(":")
        match verb:
            case "keep":
                return await self._keep(pressed, here, nonce, detail)
            case "clear":
                return await self._clear(pressed, here, nonce)
            case "unsay":
                return await self._unsay(pressed, here, nonce)
            case "forget":
                await erasure.check(here, nonce, "forget", user)
                await self._start(pressed, nonce, "forget", user, "forget.done")
                return await self._await_receipt(pressed, "forget.started")
            case "admin" if user in self._admins:
                about = await erasure.check(here, nonce, "admin", user)
                # Once it was carried out the question is gone; the job still knows its own target.
                target = Target.of(about or detail, pressed.chat_id)
                if target is None:
                    raise NotConfirmed("unknown")
                kinds: dict[str, Kind] = {"user": "forget", "chat": "chat", "all": "all"}
                kind, receipt_key = kinds[target.kind], "admin.clear_memory_done"
                await self._start(pressed, nonce, kind, target.id, receipt_key)
                return await self._await_receipt(pressed, "admin.clear_memory_started")
            case _ if verb in self._others:
                return await self._others[verb](pressed, here, rest)
        raise NotConfirmed("unknown")

    async def _keep(
        self, pressed: ButtonPress, here: Scope, nonce: str, action: str
    ) -> tuple[Part, ...]:
        """Withdraw a question; once it was confirmed, act as confirmed again: that finishes it."""
        if await self._memory.erasure.cancel(here, nonce, pressed.sender.id):
            return self._say(pressed, "clear.cancelled")
        verb, _, detail = action.partition(":")
        return await self._act(pressed, here, verb, f"{nonce}:{detail}")

    async def _clear(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        if not await may_change(asker_of(pressed, self._telegram)):
            raise NotConfirmed("not_yours")
        as_admin = pressed.is_group
        asker = None if as_admin else pressed.sender.id
        await self._memory.erasure.check(here, nonce, "clear", asker)
        await self._deleting(call_context_of(pressed, here))
        receipt = await self._memory.forgetting.clear(
            here, nonce, pressed.sender.id, pressed.update_id, as_admin=as_admin
        )
        waiting = receipt.waiting
        return self._say(pressed, "clear.done", waiting=waiting, **_counts(receipt))

    async def _unsay(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        about = await self._memory.erasure.check(here, nonce, "messages", pressed.sender.id)
        seqs = [int(seq) for seq in about.split(",") if seq]
        receipt = await self._memory.forgetting.erase_messages(here, seqs, nonce)
        if receipt.left:
            await self._memory.mailbox.wake(here)
        return self._say(pressed, "forget.message_done", **_counts(receipt))

    async def _start(
        self, pressed: ButtonPress, nonce: str, kind: Kind, target: int, receipt_key: str
    ) -> None:
        place = (pressed.chat_id, pressed.message_id, pressed.sender.language)
        report = orjson.dumps((receipt_key, *place))
        # People's messages bear Telegram's time. A clock of ours that is behind spares none of what
        # was said before we asked.
        cut_at = max(time.time(), pressed.asked_at)
        await self._memory.jobs.start(Job(nonce, kind, target, pressed.update_id, cut_at, report))

    async def _await_receipt(self, pressed: ButtonPress, key: str) -> tuple[Part, ...]:
        """Say that a job has begun, and leave the rest to its receipt.

        Said late it could stand instead of that.
        """
        part, *_ = self._say(pressed, key)
        await self._quietly(self._telegram.edit(pressed.chat_id, pressed.message_id, part))
        return ()

    async def _alert(self, pressed: ButtonPress, key: str) -> None:
        text = self._say(pressed, key)[0].text
        await self._telegram.answer_button(pressed.callback_id, text)

    def _say(self, pressed: ButtonPress, key: str, **values: object) -> tuple[Part, ...]:
        return self._sentences.say(pressed.sender.language, key, **values)

    async def _quietly(self, call: Awaitable[None]) -> None:
        try:
            await call
        except TelegramError as error:
            log.warning("button not answered", reason=type(error).__name__)


def _counts(receipt: Receipt) -> dict[str, int]:
    return {
        "messages": receipt.messages,
        "vectors": receipt.vectors,
        "learned": receipt.records,
    }
