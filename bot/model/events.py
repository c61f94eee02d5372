"""Cuts a streamed body into its server-sent events; knows nothing of what they say.

The SDK would do so too, but it makes objects of each of them, which cost more than all else in a
turn. A body is bounded, and so is one event: a server may send a line without an end.
"""

from collections.abc import Iterator

from bot.model.model_errors import NotAModel

MAX_EVENT_BYTES = 4 * 2**20
"""The last event of a response repeats all of it: text, calls and encrypted thoughts."""
_DONE = b"[DONE]"


class EventReader:
    """Takes a body piece by piece, as it comes; `is_done` once the event came that ends it."""

    def __init__(self, max_bytes: int) -> None:
        self.is_done = False
        self._left = max_bytes
        self._begun: list[bytes] = []
        self._begun_bytes = 0
        self._data: list[bytes] = []
        self._data_bytes = 0

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that is whole with this piece, up to the end.

        Raise `NotAModel` when the body or an event is too long.
        """
        self._left -= len(piece)
        for line in self._lines(piece):
            if self.is_done:
                return
            yield from self._line(line.rstrip(b"\r\n"))
        if self._left < 0:
            raise NotAModel("too long a body")
        if self._begun_bytes + self._data_bytes > MAX_EVENT_BYTES:
            raise NotAModel("too long an event")

    def _lines(self, piece: bytes) -> list[bytes]:
        """Return the lines that are whole with this piece; the rest is copied once, at its end."""
        self._begun.append(piece)
        self._begun_bytes += len(piece)
        if b"\n" not in piece:
            return []
        lines = b"".join(self._begun).splitlines(keepends=True)
        # A CR may be half of a line's end.
        self._begun = [lines.pop()] if not lines[-1].endswith(b"\n") else []
        self._begun_bytes = sum(map(len, self._begun))
        return lines

    def _line(self, line: bytes) -> Iterator[bytes]:
        """Yield the data of the event that this line ends, if it is empty and there are any."""
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
                self._data_bytes += len(line)
        elif self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            self._data_bytes = 0
            self.is_done = data.startswith(_DONE)
            if not self.is_done:
                yield data
