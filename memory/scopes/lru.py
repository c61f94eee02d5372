"""A cache that is bounded by bytes: what was not used for longest leaves first."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, Protocol, TypeVar


class Sized(Protocol):
    """Something that knows how much memory it holds."""

    @property
    def nbytes(self) -> int:
        """Roughly the bytes held."""
        ...


K = TypeVar("K", bound=Hashable)
V = TypeVar("V", bound=Sized)


class ByteBoundCache(Generic[K, V]):
    """The most recently used values, up to a number of bytes; the newest stays in any case."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._sizes: dict[K, int] = {}
        self._bytes = 0

    def get(self, key: K) -> V | None:
        """Return a value, without counting that as use."""
        return self._kept.get(key)

    def keep(self, key: K, value: V) -> None:
        """Hold a value as the newest; the oldest leave when there is no room."""
        self.drop(key)
        self._kept[key] = value
        self._sizes[key] = value.nbytes
        self._bytes += value.nbytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, key: K) -> None:
        """Forget a value."""
        self._kept.pop(key, None)
        self._bytes -= self._sizes.pop(key, 0)
