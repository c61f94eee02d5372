"""What can go wrong between us and Telegram. Each class says when, so that callers know what to do.

    TelegramError                 a call failed
    ├── Unreachable               the request was never sent: safe to repeat
    ├── OutcomeUnknown            it was sent and no readable answer came: not safe to repeat
    ├── FloodWait                 too many calls: wait `retry_after_s`
    ├── Blocked                   403: the person or the group no longer wants us
    ├── Refused                   400: this request will never succeed as it is; see `reason`
    ├── ChatMigrated              the group became a supergroup: use `new_chat_id`
    ├── Conflict                  409: another process polls, or a webhook is set
    ├── WebhookTaken              a webhook receives the updates, and we may not delete it
    └── BadToken                  401 or 404: Telegram does not know this token
    DeliveryError                 an update could not be handed on
    ├── UnreadableUpdate          it is not as the Bot API describes it: it is skipped
    └── NotAccepted               it could not be stored: Telegram keeps it and delivers it again
        ├── IntakeClosed          messages must wait, commands and buttons are still accepted
        └── UpdateRefused         it alone cannot be taken, unless somebody mends a key or our code

Texts hold only fixed words: never a token, an address or text of a person. `WebhookTaken` names the
host of a webhook, because the path may be a secret. Telegram's answers and httpx2's errors are
translated here, once. Other texts are dropped, because a proxy's error page may echo the address
and with it the token.
"""

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Literal

import httpx2

from memory.store.errors import distrust

_OfThePlace = Literal["chat_gone", "topic_gone", "closed", "message_gone", "reply_gone"]
_OfTheContent = Literal["entities", "not_copied", "unchanged", "too_long", "too_big", "no_voice"]
RefusalReason = _OfThePlace | _OfTheContent | Literal["blocked", "other"]

_DEFAULT_WAIT_S, _MAX_WAIT_S = 5.0, 86_400.0
"""For a 429 that does not say how long to wait, such as a proxy's; and the longest wait."""

_NEVER_SENT = (
    *(httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout),
    *(httpx2.ProxyError, httpx2.UnsupportedProtocol),
)

# Telegram does not document its descriptions; these fragments were seen. The first match counts.
_SEEN: dict[RefusalReason, str] = {
    "entities": r"entity|entities",
    "reply_gone": r"message to (be replied|reply)",
    "chat_gone": r"chat not found|chat was deactivated|peer_id_invalid",
    "topic_gone": r"thread not found|topic_(deleted|id_invalid)",
    # Nothing may be written there: the topic is closed, or the bot is muted.
    "closed": r"topic_closed|rights to send (text|a message)|no write access|write_forbidden",
    "unchanged": r"not.modified",
    "message_gone": r"message to \w+ not found|message_id_invalid",
    "not_copied": r"can't be copied",
    "too_long": r"too long",
    "too_big": r"file is too big",
    "no_voice": r"voice_messages_forbidden|(of|send) voice",
}
_REASONS = {reason: re.compile(seen, re.IGNORECASE) for reason, seen in _SEEN.items()}


class TelegramError(Exception):
    """Raised when a call to Telegram failed."""


class Unreachable(TelegramError):
    """Raised when the connection failed before the request was sent."""


class OutcomeUnknown(TelegramError):
    """Raised when the request was sent and we cannot tell whether Telegram carried it out."""


class FloodWait(TelegramError):
    """Raised on 429; another call before `retry_after_s` have passed lengthens the ban."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__(f"too many calls: wait {retry_after_s:g} s")
        self.retry_after_s = retry_after_s


class Blocked(TelegramError):
    """Raised when the bot was blocked in that chat or removed from it."""


class Refused(TelegramError):
    """Raised when Telegram understood the request and declined it.

    `description` is Telegram's own sentence. It may only be shown to the operator, and only if the
    request held no text of a person.
    """

    def __init__(self, reason: RefusalReason, description: str = "") -> None:
        super().__init__(f"refused: {reason}")
        self.reason = reason
        self.description = description


class ChatMigrated(TelegramError):
    """Raised when the group continues as a supergroup under `new_chat_id`."""

    def __init__(self, new_chat_id: int) -> None:
        super().__init__("the group became a supergroup")
        self.new_chat_id = new_chat_id


class Conflict(TelegramError):
    """Raised when another process polls with this token, or a webhook is set."""


class WebhookTaken(TelegramError):
    """Raised instead of polling while a webhook is set; `host` is where it delivers."""

    def __init__(self, host: str) -> None:
        super().__init__(
            f"a webhook delivers this bot's messages to {host}. If this is that bot, set "
            "WEBHOOK_URL; to poll instead, set TAKE_OVER_WEBHOOK=yes, and the process there gets "
            "no messages any more; else use another token"
        )
        self.host = host


class BadToken(TelegramError):
    """Raised when Telegram does not accept the token."""


DECLINED = (Blocked, ChatMigrated, Refused)  # the same call would be declined again


class DeliveryError(Exception):
    """Raised when an update could not be handed on."""


class UnreadableUpdate(DeliveryError):
    """Raised when an update is not as the Bot API describes it; its id may be known."""

    def __init__(self, update_id: int | None) -> None:
        super().__init__(f"unreadable update {update_id}")
        self.update_id = update_id


class NotAccepted(DeliveryError):
    """Raised when an update cannot be stored now: the store is down, or intake is full."""


class IntakeClosed(NotAccepted):
    """Raised when no more messages are accepted; commands and buttons may still be."""


class UpdateRefused(NotAccepted):
    """Raised when the store, a call or our code fails with an update; others may be taken."""


def lost(error: Exception) -> TelegramError:
    """Return what a request without an answer means."""
    kind = Unreachable if isinstance(error, _NEVER_SENT) else OutcomeUnknown
    return kind(distrust(error) or type(error).__name__)


def error_of(status: int, answer: Mapping[str, Any]) -> TelegramError:
    """Return what an answer means that is no success; it is empty if it could not be read."""
    description = str(answer.get("description") or "")[:1_000].removeprefix("Bad Request: ")
    error: TelegramError
    match status, answer.get("parameters"):
        case _, {"migrate_to_chat_id": int(new_chat_id)} if new_chat_id < 0:
            error = ChatMigrated(new_chat_id)
        case _, {"retry_after": int(wait_s)} if wait_s > 0:
            error = FloodWait(min(wait_s, _MAX_WAIT_S))
        case 429, _:
            error = FloodWait(_DEFAULT_WAIT_S)
        case 403, _ if not _REASONS["closed"].search(description):
            error = Blocked("blocked or removed")
        case 400 | 403, _:
            found = (reason for reason, seen in _REASONS.items() if seen.search(description))
            error = Refused(next(found, "other"), description)
        case 401 | 404, _:
            error = BadToken("the token is not accepted")
        case 409, _:
            error = Conflict("another poller or a webhook is active")
        case _:
            error = OutcomeUnknown(f"status {status}")
    return error


@asynccontextmanager
async def unless(reason: RefusalReason) -> AsyncIterator[None]:
    """Take this refusal as success, because the wanted state is there already."""
    try:
        yield
    except Refused as error:
        if error.reason != reason:
            raise
