"""Which chats take drafts and rich messages, and how many drafts and "typing" calls one allows.

Kept in the process, because a frame of a draft is not worth a round trip to Redis. One turn shows
at most 38 frames in 30 seconds, so the limits matter only if two topics of one private chat are
answered at once. In one process both turns count together. In two processes Telegram's 429 pauses
the frames of the process that got it, and no answer waits for that.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Literal

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
Method = Literal["sendMessageDraft", "sendRichMessage", "sendVoice", "setMessageReaction"]
"""Methods that a chat or an older server may refuse."""
_MAX_CHATS = 4096


class DraftLimits:
    """Only private chats are counted; `now` is a monotonic clock in seconds."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._calls: dict[int, deque[float]] = {}
        self._refused_until: dict[tuple[Method, int], float] = {}
        self._closed_until: dict[int, float] = {}

    def takes(self, method: Method, chat_id: int) -> bool:
        """Return false if the chat or the server refused the method recently."""
        keys = (method, _SERVER), (method, chat_id)
        return all(self._refused_until.get(key, 0) <= self._now() for key in keys)

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

    def failed(self, method: Method, chat_id: int, error: TelegramError) -> None:
        """Leave a method out for a while: an hour after a refusal, shorter after other trouble."""
        is_refusal = isinstance(error, Refused | Blocked | BadToken)
        pause_s = _REFUSED_S if is_refusal else _TROUBLE_S
        # Telegram answers 404 for a method that the server does not know.
        key = _SERVER if isinstance(error, BadToken) else chat_id
        if len(self._refused_until) >= _MAX_CHATS:
            self._refused_until.clear()  # then each chat may refuse once more
        self._refused_until[method, key] = self._now() + pause_s
        log.info("method paused", method=method, reason=type(error).__name__, pause_s=pause_s)

    def _calls_of(self, chat_id: int, now: float) -> deque[float]:
        if len(self._calls) >= _MAX_CHATS and chat_id not in self._calls:
            self._forget(now)
        return self._calls.setdefault(chat_id, deque(maxlen=_MAX_CALLS))

    def _forget(self, now: float) -> None:
        """Drop what no longer limits anything; if that is not enough, drop all counts."""
        oldest = now - max(in_s for in_s, _ in _WINDOWS)
        calls = {chat: at for chat, at in self._calls.items() if at[-1] > oldest}
        self._calls = calls if len(calls) < _MAX_CHATS else {}
        self._refused_until = {key: at for key, at in self._refused_until.items() if at > now}
        self._closed_until = {chat: at for chat, at in self._closed_until.items() if at > now}
