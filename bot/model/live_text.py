"""Lets the code that waits for an answer see it while the model still writes it.

The observer is passed on beside the calls, as the payer of a call is: no layer between a turn and
its model has to know of it.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias

from bot.model.call import ModelReply

SoFar: TypeAlias = Callable[[], ModelReply]
"""Returns an answer as far as it has come. Equal for all events of one request to a model."""
LiveObserver: TypeAlias = Callable[[SoFar], None]
"""Called at each event of a stream; returns at once and changes nothing."""

_observer: ContextVar[LiveObserver | None] = ContextVar("live_observer", default=None)


@contextmanager
def watching(observer: LiveObserver) -> Iterator[None]:
    """Have the observer called for answers asked for in this block, and in tasks begun in it."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def live_observer() -> LiveObserver | None:
    """Return the observer of this turn, None if nobody watches."""
    return _observer.get()
