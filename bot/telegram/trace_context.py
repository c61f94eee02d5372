"""The trace of an update, on its way from intake through the mailbox to the turn that answers it.

It holds the fields of a W3C `traceparent` (https://www.w3.org/TR/trace-context/) in 34 characters.
"""

import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Callable
from contextvars import ContextVar
from typing import NamedTuple

_FIELDS = struct.Struct(">QQQB")
_HALF = 64


class TraceParent(NamedTuple):
    """The trace (128 bits), the span (64 bits) that a new span follows, and the flags (8 bits)."""

    trace_id: int
    span_id: int
    flags: int

    def pack(self) -> str:
        """Return the text that is stored with a message."""
        high, low = divmod(self.trace_id, 1 << _HALF)
        packed = _FIELDS.pack(high, low, self.span_id, self.flags)
        return urlsafe_b64encode(packed).rstrip(b"=").decode()

    @classmethod
    def unpack(cls, text: str) -> "TraceParent | None":
        """Return what `pack` packed; None for "" and for what cannot be read."""
        try:
            high, low, span_id, flags = _FIELDS.unpack(urlsafe_b64decode(text + "=="))
        except (ValueError, struct.error):
            return None
        return cls(high << _HALF | low, span_id, flags)


trace_of_update: ContextVar[Callable[[], str]] = ContextVar("trace_of_update", default=str)
"""Returns the packed trace of the update that this task takes in; "" if nobody traces.

Passed by context, because intake knows no observers. Only a message that is stored asks for it.
"""
