"""What is left of a message or press that the library refuses: each field that it can read.

The Bot API gets new fields, and old ones become optional. A library that requires one more field
than Telegram sends refuses the whole message. We need few of them, so the others are dropped.
"""

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import telegram

NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What PTB raises for an update that is not as the Bot API describes it."""

_CHAT = ("id", "type", "title", "username", "first_name", "is_forum", "is_direct_messages")
_USER = ("id", "is_bot", "first_name", "last_name", "username", "language_code")
_ENTITY = ("type", "offset", "length", "url", "language")
_ORIGINS = {"forward_origin", "via_bot"}
"""Fields that say that somebody else wrote the words."""
_MAX_FIELDS = 100
_UNDER_PRESS = ("message_id", "date", "message_thread_id", "is_topic_message")
"""What a press needs of the message with the button, beside its chat."""


def readable(sent: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Return the fields of a message that can be read, and whether its sender wrote the words.

    Raise one of `NONSENSE` if nobody can be answered, because chat, sender or date are missing.
    """
    core = {
        "message_id": sent["message_id"],
        "date": sent["date"],
        "chat": _only(sent["chat"], _CHAT),
        "from": _person(sent["from"]),
    }
    telegram.Message.de_json(dict(core))
    kept = dict(core)
    further = [(name, value) for name, value in sent.items() if name not in core]
    for name, value in further[:_MAX_FIELDS]:
        plain = value
        if name in ("entities", "caption_entities") and isinstance(value, list):
            plain = [_only(each, _ENTITY) for each in value if isinstance(each, Mapping)]
        with suppress(*NONSENSE):
            telegram.Message.de_json({**core, name: plain})
            kept[name] = plain
    # A chat of a sender that cannot be read is not the sender that it hides.
    is_own = not (_ORIGINS | {"sender_chat"}) & (sent.keys() - kept.keys())
    return kept, is_own


def readable_press(sent: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a button press that say who pressed which button, and where."""
    kept = {name: sent.get(name) for name in ("id", "data")}
    kept |= {"chat_instance": "", "from": _person(sent["from"])}
    if under := sent.get("message"):
        kept["message"] = {**_only(under, _UNDER_PRESS), "chat": _only(under["chat"], _CHAT)}
    return kept


def _person(given: Mapping[str, Any]) -> dict[str, Any]:
    return {"is_bot": False, "first_name": "", **_only(given, _USER)}


def _only(given: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {name: given[name] for name in names if name in given}
