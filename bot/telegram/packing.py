"""The form in which a message waits in the mailbox: a JSON array of its fields, in their order.

Fields are only ever added at the end and with a default, so that what waits over a deploy is read.
"""

import orjson

from bot.telegram.updates import IncomingMessage, Sender, SentFile


def to_bytes(inbound: IncomingMessage) -> bytes:
    """Pack a message."""
    return orjson.dumps(_fields(inbound), _fields, orjson.OPT_PASSTHROUGH_DATACLASS)


def from_bytes(packed: bytes) -> IncomingMessage:
    """Unpack what `to_bytes` packed."""
    fields = dict(zip(IncomingMessage.__match_args__, orjson.loads(packed), strict=False))
    fields["sender"] = Sender(*fields["sender"])
    if fields.get("file"):
        fields["file"] = SentFile(*fields["file"])
    return IncomingMessage(**fields)


def _fields(value: IncomingMessage | Sender | SentFile) -> list[object]:
    return [getattr(value, name) for name in value.__match_args__]
