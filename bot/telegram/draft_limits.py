"""Which chats take drafts, and how many drafts and "typing" calls one private chat allows.

Kept in the process, because a frame of a draft is not worth a round trip. If several processes
write to one chat, Telegram's 429 pauses their frames.
"""

import time
from collections import deque
from collections.abc import Callable

import structlog

from bot.telegram.errors import BadToken, Blocked, Refused, TelegramError

log = structlog.get_logger(__name__)

_WINDOWS = ((5.0, 20), (30.0, 40))
"""So many seconds, so many calls: Telegram's limits for drafts and chat actions of one peer."""
_MAX_CALLS = 40
_REFUSED_S = 3600.0
_TROUBLE_S = 30.0
"""After silence or an error of the server."""
_SERVER = 0
_MAX_CHATS = 4096


class DraftLimits:
    """Only private chats are counted; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._calls: dict[int, deque[float]] = {}
        self._no_drafts_until: dict[int, float] = {}
        self._closed_until: dict[int, float] = {}

    def check(self, chat_id: int) -> None:
        """Raise `Refused` if the chat or the server refused a draft recently."""
        if any(self._no_drafts_until.get(key, 0) > self._now() for key in (_SERVER, chat_id)):
            raise Refused("other")

    def take(self, chat_id: int) -> bool:
        """Count a call to a private chat; return false if it has to be left out."""
        if chat_id <= 0:
            return True
        now = self._now()
        if self._closed_until.get(chat_id, 0) > now:
            return False
        calls = self._calls_of(chat_id, now)
        if any(len([at for at in calls if at > now - in_s]) >= most for in_s, most in _WINDOWS):
            return False
        calls.append(now)
        return True

    def pause(self, chat_id: int, for_s: float) -> None:
        """Leave out calls to a chat: during a ban each one would lengthen it."""
        self._closed_until[chat_id] = self._now() + for_s

    def failed(self, chat_id: int, error: TelegramError) -> None:
        """Show no drafts for a while: an hour after a refusal, shorter after other trouble."""
        is_refusal = isinstance(error, Refused | Blocked | BadToken)
        pause_s = _REFUSED_S if is_refusal else _TROUBLE_S
        # Telegram answers 404 for a method that the server does not know.
        key = _SERVER if isinstance(error, BadToken) else chat_id
        self._no_drafts_until[key] = self._now() + pause_s
        log.info("drafts paused", reason=type(error).__name__, pause_s=pause_s)

    def _calls_of(self, chat_id: int, now: float) -> deque[float]:
        if len(self._calls) >= _MAX_CHATS and chat_id not in self._calls:
            self._forget(now)
        return self._calls.setdefault(chat_id, deque(maxlen=_MAX_CALLS))

    def _forget(self, now: float) -> None:
        """Drop what no longer limits anything; if that is not enough, drop all counts."""
        oldest = now - max(in_s for in_s, _ in _WINDOWS)
        calls = {chat: at for chat, at in self._calls.items() if at[-1] > oldest}
        self._calls = calls if len(calls) < _MAX_CHATS else {}
        for until in (self._no_drafts_until, self._closed_until):
            for chat in [chat for chat, at in until.items() if at <= now]:
                del until[chat]
