"""One stream of a scope with the vectors of its entries, as far as this process has read it.

Messages and records are kept in the same way. Entries are indexed at the next search.
"""

from collections.abc import Iterator, Sequence

from memory.scopes.log import Columns, StreamDelta
from memory.search.embeddings import Embedder

_ROWS_AT_ONCE = 4_096
"""Vectors that are joined into one array at a time; with 512 dimensions they take 2 MB."""


def fingerprint_of(embedder: Embedder, recipe: str) -> str:
    """Return model, dimensions and text recipe; vectors with different ones cannot be compared."""
    return f"{embedder.fingerprint} | {recipe}"


class PackedRows:
    """Packed vectors that wait to be indexed: with ascending ids, all of one length.

    `newest` is the last id, `count` the number of rows so far.
    """

    def __init__(self) -> None:
        self.newest = self.count = 0
        self._row_bytes = 0
        self._waiting: list[tuple[int, bytes]] = []

    def __len__(self) -> int:
        """Count the rows that wait to be indexed."""
        return len(self._waiting)

    @property
    def nbytes(self) -> int:
        """The bytes of the rows that wait."""
        return len(self._waiting) * self._row_bytes

    def fits(self, rows: Sequence[tuple[int, bytes]]) -> bool:
        """Return whether rows are as long as earlier ones; if not, the model has changed."""
        return not rows or self._row_bytes in (0, len(rows[0][1]))

    def extend(self, rows: Sequence[tuple[int, bytes]]) -> None:
        """Append rows that fit, except those that are here already."""
        newer = [(number, row) for number, row in rows if number > self.newest]
        if newer:
            self._waiting.extend(newer)
            self.count += len(newer)
            self.newest, row = newer[-1]
            self._row_bytes = len(row)

    def wait_again(self, taken: Sequence[tuple[int, bytes]], first: int) -> None:
        """Let rows wait again that were taken; remove those that have an id before `first`."""
        self._waiting = [each for each in (*taken, *self._waiting) if each[0] >= first]

    def taken(self) -> Iterator[tuple[Sequence[int], Sequence[bytes]]]:
        """Yield the ids and the rows that wait, some at a time, and remove them."""
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), _ROWS_AT_ONCE):
            numbers, rows = zip(*waiting[start : start + _ROWS_AT_ONCE], strict=True)
            yield numbers, rows


class EmbeddedStream:
    """A stream of entries and the stream of their vectors.

    `length` and `vectors_length` count what is stored, -1 before anything was read. `newest` is the
    id of the newest entry and `count` the number of entries that were read.
    """

    def __init__(self) -> None:
        self.fingerprint = ""
        self.length = self.vectors_length = -1
        self.newest = self.count = 0
        self.vectors = PackedRows()
        self._text_bytes = 0

    @property
    def is_whole(self) -> bool:
        """Whether all stored entries and vectors are here."""
        return self.count == self.length and self.vectors.count == self.vectors_length

    @property
    def nbytes(self) -> int:
        """Roughly the bytes in memory, without indexes."""
        return self._text_bytes + self.vectors.nbytes

    def joins(self, delta: StreamDelta) -> bool:
        """Return whether what was read has vectors of the same model as the entries here."""
        is_same = self.fingerprint == delta.fingerprint or not self.vectors.count
        return is_same and self.vectors.fits(delta.vectors)

    def add(self, delta: StreamDelta) -> None:
        """Add entries for which `joins` is true, except those that are here already."""
        self.fingerprint = delta.fingerprint
        if delta.length >= 0:
            self.length, self.vectors_length = delta.length, delta.vectors_length
        for entry_id, columns in delta.entries:
            if entry_id > self.newest:
                self._text_bytes += self._take(entry_id, columns)
                self.newest = entry_id
                self.count += 1
        self.vectors.extend(delta.vectors)

    def add_stored_vectors(
        self, fingerprint: str, after: int, rows: Sequence[tuple[int, bytes]]
    ) -> None:
        """Add vectors that this process has stored after `after`, if nothing is missing here."""
        delta = StreamDelta(length=-1, fingerprint=fingerprint, vectors=rows)
        has_entries = self.newest >= rows[-1][0]
        if has_entries and self.vectors.newest == after and self.joins(delta):
            self.vectors_length += len(rows)
            self.add(delta)

    def _take(self, entry_id: int, columns: Columns) -> int:
        """Keep one stored entry; return roughly how many bytes it takes."""
        raise NotImplementedError
