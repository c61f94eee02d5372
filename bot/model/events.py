"""Cuts a streamed body into its server-sent events; knows nothing of what they say.

The SDK would do so too, but it makes objects of each of them, which cost more than all else in a
turn.
"""

from collections.abc import Iterator

_DONE = b"[DONE]"


class EventReader:
    """Takes a body piece by piece, as it comes; `is_done` once the event came that ends it."""

    def __init__(self) -> None:
        self.is_done = False
        self._begun = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that is whole with this piece, up to the end."""
        lines = (self._begun + piece).splitlines(keepends=True)
        # A CR may be half of a line's end.
        self._begun = lines.pop() if lines and not lines[-1].endswith(b"\n") else b""
        for line in lines:
            if self.is_done:
                return
            yield from self._line(line.rstrip(b"\r\n"))

    def _line(self, line: bytes) -> Iterator[bytes]:
        """Yield the data of the event that this line ends, if it is empty and there are any."""
        if line:
            name, _, value = line.partition(b":")
            if name == b"data":
                self._data.append(value.removeprefix(b" "))
        elif self._data:
            data = b"\n".join(self._data)
            self._data.clear()
            self.is_done = data.startswith(_DONE)
            if not self.is_done:
                yield data
