"""The scopes that this process has read, up to a number of bytes. Redis has the truth."""

from collections import OrderedDict

from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope


class ScopeCache:
    """The most recently used scopes. The newest one stays even if it is too large."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._kept: OrderedDict[Scope, ScopeMemory] = OrderedDict()
        self._sizes: dict[Scope, int] = {}
        self._bytes = 0

    @property
    def scopes(self) -> list[Scope]:
        """The scopes that are cached, the least recently used first."""
        return list(self._kept)

    def get(self, scope: Scope) -> ScopeMemory | None:
        """Return a scope, None if it is not cached; this does not count as use."""
        return self._kept.get(scope)

    def keep(self, scope_memory: ScopeMemory) -> None:
        """Put a scope in as the newest; drop the oldest ones while there are too many bytes."""
        scope, nbytes = scope_memory.scope, scope_memory.nbytes
        self.drop(scope)
        self._kept[scope] = scope_memory
        self._sizes[scope] = nbytes
        self._bytes += nbytes
        while self._bytes > self._max_bytes and len(self._kept) > 1:
            self.drop(next(iter(self._kept)))

    def drop(self, scope: Scope) -> None:
        """Drop a scope, if it is cached."""
        self._kept.pop(scope, None)
        self._bytes -= self._sizes.pop(scope, 0)
