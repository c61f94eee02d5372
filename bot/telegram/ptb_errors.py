"""python-telegram-bot's errors, and httpx2's behind them, put into our own words once.

Their texts stay here: a proxy's error page may echo the address, and with it the token.
"""

import datetime as dt
import re

import httpx2
from telegram import error as ptb

from bot.telegram.errors import (
    BadToken,
    Blocked,
    ChatMigrated,
    Conflict,
    FloodWait,
    OutcomeUnknown,
    RefusalReason,
    Refused,
    TelegramError,
    Unreachable,
)

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
    httpx2.UnsupportedProtocol,
)
# For a 429 that does not say how long, such as a proxy's.
_UNTOLD_WAIT_S = 5.0

# Descriptions are not documented; these fragments were seen. First match wins.
_REASONS: tuple[tuple[re.Pattern[str], RefusalReason], ...] = (
    (re.compile(r"entity|entities", re.IGNORECASE), "entities"),
    (re.compile(r"message to (be replied|reply)", re.IGNORECASE), "reply_gone"),
    (
        re.compile(r"thread not found|topic_(deleted|closed|id_invalid)", re.IGNORECASE),
        "topic_gone",
    ),
    (re.compile(r"not modified", re.IGNORECASE), "unchanged"),
    (re.compile(r"message to \w+ not found|message_id_invalid", re.IGNORECASE), "message_gone"),
    (re.compile(r"too long", re.IGNORECASE), "too_long"),
    (re.compile(r"file is too big", re.IGNORECASE), "too_big"),
)


def translate(error: ptb.TelegramError) -> TelegramError:
    """Return our error for one of theirs; what is not known to be unsent counts as perhaps done."""
    ours: TelegramError
    match error:
        case ptb.RetryAfter():
            ours = FloodWait(_seconds(error.retry_after))
        case ptb.ChatMigrated():
            ours = ChatMigrated(error.new_chat_id)
        case ptb.Forbidden():
            ours = Blocked("blocked, removed or silenced")
        case ptb.Conflict():
            ours = Conflict("another poller or a webhook is active")
        case ptb.InvalidToken() | ptb.EndPointNotFound():
            ours = BadToken("the token is not accepted")
        case ptb.BadRequest():  # to PTB a NetworkError, so it is looked at before those
            ours = Refused(_reason(error.message), error.message)
        case ptb.NetworkError() if isinstance(error.__cause__, _NEVER_SENT):
            ours = Unreachable(type(error.__cause__).__name__)
        case ptb.NetworkError() if error.message.startswith("Too Many Requests"):
            ours = FloodWait(_UNTOLD_WAIT_S)
        case _:
            ours = OutcomeUnknown(type(error.__cause__ or error).__name__)
    return ours


def _reason(description: str) -> RefusalReason:
    for pattern, reason in _REASONS:
        if pattern.search(description):
            return reason
    return "other"


def _seconds(wait: int | dt.timedelta) -> float:
    return wait.total_seconds() if isinstance(wait, dt.timedelta) else wait
