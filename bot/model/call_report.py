"""What each call of a model tells its observers when it has ended.

An observer is a callable. It returns at once and changes nothing: metrics count, the usage recorder
bills. It is called in the task that made the call.
"""

import re
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Literal, Self, TypeAlias

from bot.model.call import Usage

CallKind: TypeAlias = Literal[
    "answer", "internal", "embedding", "transcription", "speech", "drawing"
]
WhichModel: TypeAlias = Literal["first", "second"]
"""`OPENAI_MODEL` and `OPENAI_MEMORY_MODEL` name the first model, `FALLBACK_MODEL` the second."""

_NOTHING_BILLED = Usage()
_DATA_URL = re.compile(rb"data:image/[a-z]{1,10};base64,[A-Za-z0-9+/=]*+")
_PICTURE_TOKENS = 1_000
CHARS_PER_TOKEN = 4


@dataclass(frozen=True, slots=True)
class CallReport:
    """One call, with all requests that it took.

    `model` is the model's name. `usage` also counts what a failed call was billed. `error` is None
    if there was an answer. With `is_reply` the answer has no tool calls: the reply of the turn
    follows at once.
    """

    kind: CallKind
    model: str
    which: WhichModel
    seconds: float
    usage: Usage = _NOTHING_BILLED
    error: BaseException | None = None
    is_reply: bool = False

    @property
    def outcome(self) -> str:
        """Return "ok", or the name of the error."""
        return "ok" if self.error is None else type(self.error).__name__


ModelObserver: TypeAlias = Callable[[CallReport], None]


class ObservedCall:
    """A block that makes one call; when it ends, however it ends, the observers get a report.

    The block adds to `usage` what each request was billed. If a server has read a prompt and its
    answer never came to an end, the prompt is estimated: servers bill it all the same.
    """

    def __init__(
        self,
        kind: CallKind,
        model: str,
        which: WhichModel,
        observers: Sequence[ModelObserver],
    ) -> None:
        self._kind: CallKind = kind
        self._model = model
        self._which: WhichModel = which
        self._observers = observers
        self._began = monotonic()
        self._unanswered: list[bytes] = []
        self.usage = _NOTHING_BILLED
        self.is_reply = False
        self.unanswered_usage: Usage | None = None
        """What a server bills for a request without an answer; None: for its prompt."""

    @property
    def is_unanswered(self) -> bool:
        """Whether a server has read a request of this call, and its answer has not ended."""
        return bool(self._unanswered)

    def sent(self, body: bytes) -> None:
        """Note that a server has got a request."""
        self._unanswered.append(body)

    def answered(self) -> None:
        """Note that the newest request was refused, or that its answer has come to its end."""
        if self._unanswered:
            self._unanswered.pop()

    def __enter__(self) -> Self:
        self._outer = _current.set(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        _current.reset(self._outer)
        for body in self._unanswered:
            self.usage += self.unanswered_usage or Usage(_estimated_tokens(body))
        seconds = monotonic() - self._began
        report = CallReport(
            self._kind, self._model, self._which, seconds, self.usage, error, self.is_reply
        )
        for observer in self._observers:
            observer(report)


_current: ContextVar[ObservedCall | None] = ContextVar("call", default=None)


def current_call() -> ObservedCall | None:
    """Return the call that the running task makes."""
    return _current.get()


def _estimated_tokens(body: bytes) -> int:
    """Return about what a server bills for a prompt that it was sent."""
    text, pictures = _DATA_URL.subn(b"", body)
    chars = len(text.decode(errors="replace"))
    return chars // CHARS_PER_TOKEN + pictures * _PICTURE_TOKENS
