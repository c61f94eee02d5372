"""The form in which a message is stored until it is answered."""

from dataclasses import fields
from typing import Any

import orjson

from bot.telegram.updates import IncomingMessage, Replaced, ReplyTarget, Sender, SentFile
from memory.message import Message
from memory.queue.stored_version import stamped, unstamped

_DEFAULTS = [field.default for field in fields(IncomingMessage)]


def to_bytes(message: IncomingMessage) -> bytes:
    """Pack a message for the mailbox: a JSON array of its fields in their order.

    New fields are only added at the end, with a default: messages may wait during a deploy. What
    has its default at the end is left out.
    """
    values = _fields(message)
    while values[-1] == _DEFAULTS[len(values) - 1]:
        values.pop()
    return stamped(orjson.dumps(values, _fields, orjson.OPT_PASSTHROUGH_DATACLASS))


def from_bytes(packed: bytes) -> IncomingMessage:
    """Unpack what `to_bytes` packed; raise `ValueError` if a newer release did."""
    read = orjson.loads(unstamped(packed))
    values = dict(zip(IncomingMessage.__match_args__, read, strict=False))
    values["sender"] = Sender(*values["sender"])
    if values.get("file"):
        values["file"] = SentFile(*values["file"])
    if values.get("reply"):
        values["reply"] = ReplyTarget(*values["reply"])
    if values.get("replaced"):
        question, answer_ids, seqs, *rest = values["replaced"]
        messages = tuple(Message(*map(_immutable, message)) for message in question)
        values["replaced"] = Replaced(messages, tuple(answer_ids), tuple(seqs), *rest)
    return IncomingMessage(**values)


def _immutable(value: object) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _fields(value: Any) -> list[object]:
    return [getattr(value, name) for name in value.__match_args__]
