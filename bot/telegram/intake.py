"""Intake: an update is stored before Telegram is told that it arrived.

Webhook and polling both hand updates to `App.accept`, which calls `Intake.accept`.

Telegram sends each picture of an album as a message of its own, and only one of them mentions us.
The others belong to it. One that comes before it waits in the memory of this process, because group
talk that does not address us is stored nowhere.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Protocol

import structlog

from bot.telegram.edits import edited_entry
from bot.telegram.errors import (
    DECLINED,
    IntakeClosed,
    NotAccepted,
    TelegramError,
    UnreadableUpdate,
    UpdateRefused,
)
from bot.telegram.updates import (
    ALONE,
    WITH_WORDS,
    AlbumPart,
    ChatMigration,
    Ignored,
    ImmediateUpdate,
    IncomingMessage,
    Update,
    to_bytes,
    trace_of_update,
)
from memory.limits.capacity import Ballast
from memory.queue.mailbox import Entry, Mailbox, MailboxFull, Outcome
from memory.store.client import RedisClient
from memory.store.errors import StoreError, StoreFull, StoreRefused
from memory.store.keys import Keys, Scope
from memory.store.tasks import end_tasks

log = structlog.get_logger(__name__)

_MAX_ACCEPT_S = 20
_MAX_CONCURRENT = 200
"""Updates that one process accepts at once. Over a webhook Telegram sends at most 100 at once."""
_CHECK_EVERY_S = 1.0
_REFUSED_S, _MAX_REFUSED = 60.0, 1_000  # how long an update may be refused alone; how many are
_MAX_EDIT_AGE_S = 15 * 60  # so much later an edit may add our name to a message of a group
MAX_PENDING = 10_000
"""Conversations that may wait or be in work; a process of 32 slots needs 12 minutes for them."""

RawUpdate = Mapping[str, object]
"""An update as Telegram sent it."""
Read = Callable[[RawUpdate], Update]
"""Returns what an update means to us; raises `UnreadableUpdate`."""

ActImmediately = Callable[[ImmediateUpdate], Awaitable[IncomingMessage | None]]
"""Acts on what does not wait; a repeated call changes nothing.
Returns a message that still has to be answered in its turn. Raises `StoreError` or
`TelegramError`."""


class Accept(Protocol):
    """Takes updates in."""

    async def __call__(self, raw: RawUpdate, /, *, after_refusal: bool = False) -> None:
        """Return when the update is stored, or when there is nothing to store: Telegram is told.

        `after_refusal` says that an earlier message was refused. A message is refused then as well,
        so that it does not overtake. Raise `NotAccepted` if Telegram has to keep the update.
        """


@dataclass(slots=True)
class Backpressure:
    """Has Telegram keep new messages while too many conversations wait, or while Redis is full.

    A webhook is answered with 503 then and polling pauses; Telegram delivers again for 24 hours.
    The ready queue is checked once a second at most.
    """

    client: RedisClient
    keys: Keys
    ballast: Ballast
    max_pending: int = MAX_PENDING
    now: Callable[[], float] = time.monotonic
    _checked_at: float = field(default=float("-inf"), init=False)
    _is_high: bool = field(default=False, init=False)

    async def check(self, message: IncomingMessage) -> None:
        """Return if a message may be stored; raise `IntakeClosed` or `StoreError`.

        While Redis is full, only commands may be: the freed ballast is for running turns.
        """
        if self.ballast.is_released and _is_message(message):
            raise StoreFull("intake is closed")
        if self.now() - self._checked_at >= _CHECK_EVERY_S:
            self._checked_at = self.now()
            self._is_high = await self.client.call("XLEN", self.keys.ready_queue) > self.max_pending
        if self._is_high:
            raise IntakeClosed


@dataclass(eq=False)
class Intake:
    """Puts messages into the mailbox of their conversation; buttons and stops act at once."""

    read: Read
    mailbox: Mailbox
    act_immediately: ActImmediately
    backpressure: Backpressure
    now: Callable[[], float] = time.monotonic
    _running: int = field(default=0, init=False)
    _refused_since: dict[object, float] = field(default_factory=dict, init=False)
    _stored_at: float = field(default=float("-inf"), init=False)

    def __post_init__(self) -> None:
        self._albums = Albums(self.mailbox, self._store)

    async def accept(self, raw: RawUpdate, *, after_refusal: bool = False) -> None:
        """Store an update or act on it, as `Accept` says.

        An unreadable update is skipped, because Telegram would deliver it for ever.
        """
        try:
            update = self.read(raw)
        except UnreadableUpdate as error:
            log.warning("update unreadable", update=error.update_id)
            update = Ignored(error.update_id or 0, "unreadable")
        except Exception as error:  # the outer fence, as below
            log.exception("update failed", update=raw.get("update_id"))
            self._refuse(raw.get("update_id"), error)
            return
        if after_refusal and _is_message(update):
            raise IntakeClosed
        if self._running >= _MAX_CONCURRENT:
            log.warning("update refused", update=update.update_id, reason="TooManyAtOnce")
            raise NotAccepted
        self._running += 1
        try:
            async with asyncio.timeout(_MAX_ACCEPT_S):
                await self._take(update)
        except (StoreError, MailboxFull, IntakeClosed, TelegramError, TimeoutError) as error:
            log.warning("update refused", update=update.update_id, reason=type(error).__name__)
            if isinstance(error, StoreFull):
                with suppress(StoreError):
                    await self.backpressure.ballast.release()
            if isinstance(error, StoreFull | IntakeClosed):
                raise IntakeClosed from error
            if not isinstance(error, StoreRefused):
                # A call that fails in one chat may work in others, so these must not wait.
                is_alone = isinstance(error, TelegramError) and not _is_message(update)
                raise (UpdateRefused if is_alone else NotAccepted) from error
            self._refuse(update.update_id, error)
        except Exception as error:  # the outer fence: a mistake of ours holds up no other update
            is_new = update.update_id not in self._refused_since
            log.exception("update failed", update=update.update_id, exc_info=is_new)
            self._refuse(update.update_id, error)
        finally:
            self._running -= 1

    def _refuse(self, update_id: object, error: Exception) -> None:
        """Raise `UpdateRefused`; drop it if another was stored a minute after it was first refused.

        Over a webhook, what the same chat sends later waits behind it.
        """
        if len(self._refused_since) >= _MAX_REFUSED:
            self._refused_since.clear()
        since = self._refused_since.setdefault(update_id, self.now())
        if self._stored_at - since < _REFUSED_S:  # others may be refused, too
            raise UpdateRefused from error
        log.error("update dropped", update=update_id, reason="refused again and again")

    async def stop(self) -> None:
        """Wait until no picture waits: another process may take the one that addresses us."""
        await end_tasks(self._albums.waiting, _HELD_S)

    async def _take(self, update: Update) -> None:
        match update:
            case IncomingMessage(is_immediate=False):
                await self.backpressure.check(update)
                if update.is_group and update.album and update.kind != "command":
                    await self._albums.begin(update)
                elif await self._store(update) is Outcome.WAITS and not update.is_group:
                    await self._act(update)
            case AlbumPart():
                await self._albums.join(update.message)
            case ChatMigration():
                old, new = (Scope.of_chat(id_) for id_ in (update.old_chat_id, update.new_chat_id))
                await self.mailbox.move(old, new)
                await self._act(update)
                log.info("group migrated", conversation=old.tag, to=new.tag)
            case Ignored():
                log.debug("update ignored", update=update.update_id, reason=update.reason)
            case _:  # buttons, stops, 👎, strangers, names of topics: none waits for a turn
                if waiting := await self._act(update):
                    if _is_message(waiting):
                        await self.backpressure.check(waiting)
                    await self._store(waiting)

    async def _store(self, message: IncomingMessage) -> Outcome:
        """Put a message into its mailbox. If the mailbox is full, drop the message.

        Telegram would offer it again and again, and hold back the updates behind it.
        """
        conversation = Scope.of_chat(message.chat_id, message.topic_id)
        tag = conversation.tag
        message = replace(message, trace=trace_of_update.get()())
        is_edit, edited = message.kind == "edit", partial(edited_entry, message)
        if is_edit and await self.mailbox.edit(conversation, message.update_id, edited):
            log.info("update", update=message.update_id, conversation=tag, outcome="edited")
            return Outcome.TAKEN
        # Nothing from before a new session belongs into the turn that begins it.
        is_alone = message.kind in ALONE or message.begins_session
        is_grouped = bool(message.forwarded_at or message.album)
        entry = Entry(message.update_id, message.sender.id, is_alone, to_bytes(message), is_grouped)
        keeps_id, as_new = message.is_group and message.kind in WITH_WORDS, None
        is_soon = is_edit and message.edited_at - message.sent_at <= _MAX_EDIT_AGE_S
        question = replace(message, kind="text")
        if message.is_group and is_soon and not (message.album or question.is_immediate):
            keeps_id, as_new = True, replace(entry, is_alone=False, body=to_bytes(question))
        named = f"{message.chat_id}:{message.message_id}" if keeps_id else ""
        try:
            outcome = await self.mailbox.put(conversation, entry, named, as_new)
            self._stored_at = self.now()
        except MailboxFull:
            log.warning("mailbox full", conversation=tag, sender=entry.sender_id)
            outcome = Outcome.DROPPED
        log.info("update", update=message.update_id, conversation=tag, outcome=outcome.value)
        return outcome

    async def _act(self, update: ImmediateUpdate) -> IncomingMessage | None:
        """Act on an update that does not wait. One that can never succeed is dropped.

        A client can put anything into a press, and Telegram would hold back the updates behind it.
        """
        try:
            return await self.act_immediately(update)
        except (StoreRefused, *DECLINED) as error:
            log.warning("update dropped", update=update.update_id, reason=type(error).__name__)
        except (StoreError, TelegramError, TimeoutError):
            raise
        except Exception:  # the outer fence: an error of ours, which a retry would not mend
            log.exception("update failed", update=update.update_id)
        return None


def _is_message(update: Update) -> bool:
    """Return whether a closed intake refuses the update. It accepts commands and buttons."""
    is_command = isinstance(update, IncomingMessage) and update.kind == "command"
    return isinstance(update, AlbumPart | IncomingMessage) and not is_command


_HELD_S = 5.0
"""How long a picture waits for another one of its album that addresses us. Then it is dropped."""
_FIRST_LOOK = 64  # after this part of it we look if another process has taken it; pauses double
_MAX_HELD = 500  # how many albums may wait in a process; pictures of further albums are dropped
_Key = tuple[Scope, int, str]


@dataclass(frozen=True, slots=True)
class Albums:
    """Stores the pictures of an album that addresses us in a group, each by `Intake._store`."""

    mailbox: Mailbox
    store: Callable[[IncomingMessage], Awaitable[object]]
    held_s: float = _HELD_S
    _held: dict[_Key, dict[int, IncomingMessage]] = field(default_factory=dict, init=False)
    waiting: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def begin(self, message: IncomingMessage) -> None:
        """Store a message that addresses us, and the pictures of its album that came before.

        Raise `StoreError`. Pictures that were not stored then go on waiting.
        """
        key = await self._key(message)
        await self.mailbox.note_album(*key)
        await self._release(key, message)

    async def join(self, part: IncomingMessage) -> None:
        """Store a message that does not address us if its album does; otherwise let it wait.

        Raise `StoreError`.
        """
        key = await self._key(part)
        has_room = key in self._held or len(self._held) < _MAX_HELD
        if part.kind != "edit" and has_room:  # held before we look, so that `begin` misses none
            if key not in self._held:
                self.waiting.add(waiting := asyncio.create_task(self._wait(key)))
                waiting.add_done_callback(self.waiting.discard)
            self._held.setdefault(key, {})[part.update_id] = part
        if await self.mailbox.has_album(*key):
            await self._release(key, part)

    async def _wait(self, key: _Key) -> None:
        """Let pictures wait, then drop them. Another process may note their album meanwhile."""
        pause_s = self.held_s / _FIRST_LOOK
        try:
            async with asyncio.timeout(self.held_s):
                while self._held[key]:
                    await asyncio.sleep(pause_s)
                    pause_s *= 2
                    with suppress(StoreError):
                        if await self.mailbox.has_album(*key):
                            await self._release(key)
        except TimeoutError:
            pass
        finally:
            del self._held[key]

    async def _release(self, key: _Key, *messages: IncomingMessage) -> None:
        held = self._held.get(key, {})
        for each in ({message.update_id: message for message in messages} | held).values():
            await self.store(each)
            held.pop(each.update_id, None)

    async def _key(self, message: IncomingMessage) -> _Key:
        conversation = Scope.of_chat(message.chat_id, message.topic_id)
        return await self.mailbox.resolve(conversation), message.sender.id, message.album
