"""What each call of a model tells its observers when it has ended.

An observer is a callable. It returns at once and changes nothing: metrics count, the usage recorder
bills. It is called in the task that made the call.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from types import TracebackType
from typing import Literal, Self, TypeAlias

from bot.model.call import Usage

CallKind: TypeAlias = Literal["answer", "internal", "embedding", "transcription", "speech"]
WhichModel: TypeAlias = Literal["first", "second"]
"""`OPENAI_MODEL` and `OPENAI_MEMORY_MODEL` name the first model, `FALLBACK_MODEL` the second."""

_NOTHING_BILLED = Usage()


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

    The block adds to `usage` what each request was billed.
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
        self.usage = _NOTHING_BILLED
        self.is_reply = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        seconds = monotonic() - self._began
        report = CallReport(
            self._kind, self._model, self._which, seconds, self.usage, error, self.is_reply
        )
        for observer in self._observers:
            observer(report)
