"""Intake: takes an update in before Telegram is told that it arrived.

The one way in, for webhook and polling alike.
"""

import asyncio
from contextlib import suppress
from typing import Protocol

import structlog

from bot.telegram.delivery import RawUpdate
from bot.telegram.errors import DECLINED, IntakeClosed, NotAccepted, TelegramError
from bot.telegram.packing import to_bytes
from bot.telegram.updates import ButtonPress, ChatMigration, Ignored, IncomingMessage, Update
from memory.queue.mailbox import Entry, Mailbox, MailboxFull, Outcome
from memory.store.errors import StoreError, StoreFull, StoreRefused
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_LONGEST_S = 20
_MAX_IN_HAND = 200
"""Updates taken in at once by one process; Telegram offers at most 100 over a webhook."""


class Reader(Protocol):
    """Reads raw updates."""

    def read(self, raw: RawUpdate) -> Update:
        """Return what the update means to us; raise `UnreadableUpdate`."""
        ...


class Pressing(Protocol):
    """Acts on buttons."""

    async def press(self, pressed: ButtonPress) -> None:
        """Act on a button, once however often it comes; raise `StoreError` or `TelegramError`."""
        ...


class Room(Protocol):
    """What is kept for the day when Redis is full."""

    @property
    def is_spent(self) -> bool:
        """Whether that day is here: then only what may end it is taken in."""
        ...

    async def spend(self) -> None:
        """Let what runs have it; raise `StoreError`."""
        ...


class Overloaded(Exception):  # noqa: N818 - says when
    """Raised when no more messages should wait; buttons are acted upon all the same."""


class Backpressured(Protocol):
    """How much waits for an answer."""

    async def is_high(self) -> bool:
        """Say whether it is more than should wait; raise `StoreError`."""
        ...


class Intake:
    """Puts messages into their conversation's mailbox and acts on buttons at once."""

    def __init__(
        self,
        reader: Reader,
        mailbox: Mailbox,
        buttons: Pressing,
        room: Room,
        backpressure: Backpressured,
    ) -> None:
        self._reader = reader
        self._mailbox = mailbox
        self._buttons = buttons
        self._room = room
        self._backpressure = backpressure
        self._in_hand = 0

    async def accept(self, raw: RawUpdate, *, overtakes: bool = False) -> None:
        """Take an update in; raise `NotAccepted` when Telegram must keep it, `UnreadableUpdate`.

        One that `overtakes` was sent after what was not taken: a message is not taken then either.
        """
        update = self._reader.read(raw)
        if overtakes and _is_message(update):
            raise IntakeClosed
        if self._in_hand >= _MAX_IN_HAND:
            log.warning("not taken", update=update.update_id, reason="TooManyAtOnce")
            raise NotAccepted
        self._in_hand += 1
        try:
            async with asyncio.timeout(_LONGEST_S):
                await self._take(update)
        except (StoreError, MailboxFull, Overloaded, TelegramError, TimeoutError) as error:
            log.warning("not taken", update=update.update_id, reason=type(error).__name__)
            if isinstance(error, StoreFull):
                with suppress(StoreError):
                    await self._room.spend()
            is_closed = isinstance(error, StoreFull | Overloaded)
            raise (IntakeClosed if is_closed else NotAccepted) from error
        finally:
            self._in_hand -= 1

    async def _take(self, update: Update) -> None:
        match update:
            case IncomingMessage() if self._room.is_spent and _is_message(update):
                raise StoreFull("intake is closed")
            case IncomingMessage() if await self._backpressure.is_high():
                raise Overloaded
            case IncomingMessage():
                conversation = Scope.of_chat(update.chat_id, update.topic_id)
                outcome = await self._put(conversation, _entry(update))
                log.info(
                    "update",
                    update=update.update_id,
                    conversation=conversation.tag,
                    outcome=outcome.value,
                )
            case ButtonPress():
                await self._press(update)
            case ChatMigration():
                old, new = (Scope.of_chat(id_) for id_ in (update.old_chat_id, update.new_chat_id))
                await self._mailbox.move(old, new)
                log.info("group moved", conversation=old.tag, to=new.tag)
            case Ignored():
                log.debug("update ignored", update=update.update_id, reason=update.reason)

    async def _press(self, pressed: ButtonPress) -> None:
        """Act on a button; drop a press that never will succeed.

        It says whatever a client sends, and would hold up what others send behind it.
        """
        try:
            await self._buttons.press(pressed)
        except (StoreRefused, *DECLINED) as error:
            log.warning("button dropped", update=pressed.update_id, reason=type(error).__name__)
        except (StoreError, TelegramError, TimeoutError):
            raise
        except Exception:  # the outer fence: no trouble that passes
            log.exception("button failed", update=pressed.update_id)

    async def _put(self, conversation: Scope, entry: Entry) -> Outcome:
        """Put mail where a turn finds it; a flood is dropped.

        Telegram would offer it again and again, and hold up what others send behind it.
        """
        try:
            return await self._mailbox.put(conversation, entry)
        except MailboxFull:
            log.warning("mailbox full", conversation=conversation.tag, sender=entry.sender_id)
            return Outcome.DROPPED


def _is_message(update: Update) -> bool:
    """Say whether intake closes for it: it does not for commands, let alone for buttons."""
    return isinstance(update, IncomingMessage) and update.kind != "command"


def _entry(inbound: IncomingMessage) -> Entry:
    # A stranger is refused alone: the sentence must not stand for anybody else's words. A file has
    # an answer of its own.
    is_alone = inbound.kind in ("command", "document", "stranger")
    return Entry(inbound.update_id, inbound.sender.id, is_alone, to_bytes(inbound))
