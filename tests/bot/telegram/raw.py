"""Raw updates as Telegram delivers them, with entities marked as Telegram marks them."""

import re
from collections.abc import Mapping

from bot.telegram.bot_api import BotIdentity
from bot.telegram.update_reader import UpdateReader
from bot.telegram.updates import ButtonPress, Ignored, IncomingMessage, Update

ME = BotIdentity(id=42, username="Ricordo_bot", name="Ricordo", can_read_all_group_messages=False)
COMMANDS = frozenset({"start", "help", "clear", "forget", "ask"})

ANNA = {
    "id": 7,
    "is_bot": False,
    "first_name": "Anna",
    "last_name": "K.",
    "username": "anna",
    "language_code": "de",
}
US = {"id": ME.id, "is_bot": True, "first_name": "Ricordo", "username": "Ricordo_bot"}
OTHER_BOT = {"id": 99, "is_bot": True, "first_name": "Other", "username": "other_bot"}

PRIVATE = {"id": 7, "type": "private", "first_name": "Anna"}
GROUP = {"id": -1005, "type": "supergroup", "title": "Family"}

FILE = {"file_id": "f", "file_unique_id": "u"}
PHOTO = [{**FILE, "width": 1, "height": 1}]
VIDEO = {**PHOTO[0], "duration": 1}
STICKER = {**PHOTO[0], "type": "regular", "is_animated": True, "is_video": False}

_MARKS = {
    "bot_command": r"(?<!\S)/\w{1,32}(?:@\w{3,32})?(?![\w/@])",
    "mention": r"(?<![\w/])@\w{3,32}",
}


def utf16(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


def entities(text: str) -> list[dict[str, object]]:
    return [
        {"type": kind, "offset": utf16(text[: found.start()]), "length": utf16(found[0])}
        for kind, pattern in _MARKS.items()
        for found in re.finditer(pattern, text)
    ]


def message(text: str | None = None, /, **fields: object) -> dict[str, object]:
    """Return a message from Anna to us in private; `chat=GROUP` and so on replace its fields."""
    body: dict[str, object] = {
        "message_id": 11,
        "date": 1_700_000_000,
        "chat": PRIVATE,
        "from": ANNA,
    }
    if text is not None:
        body |= {"text": text, "entities": entities(text)}
    return {"update_id": 1, "message": body | fields}


def said(text: str, author: Mapping[str, object], **fields: object) -> dict[str, object]:
    """Return a message that another one replies to."""
    return {
        "message_id": 10,
        "date": 1_699_999_999,
        "chat": GROUP,
        "from": dict(author),
        "text": text,
        **fields,
    }


def pressed(**fields: object) -> dict[str, object]:
    """Return a press by Anna of a button under our message."""
    query: dict[str, object] = {
        "id": "cb1",
        "from": ANNA,
        "chat_instance": "x",
        "data": "clear:1",
        "message": {"message_id": 10, "date": 1, "chat": PRIVATE, "from": US, "text": "sure?"},
    }
    return {"update_id": 2, "callback_query": query | fields}


def reader(*allowed: int) -> UpdateReader:
    def serves(sender: int, _: int) -> bool:
        return not allowed or sender in allowed

    return UpdateReader(ME, COMMANDS, serves, file_commands=frozenset({"import"}))


def read(raw: Mapping[str, object], *allowed: int) -> Update:
    return reader(*allowed).read(raw)


def inbound(raw: Mapping[str, object], *allowed: int) -> IncomingMessage:
    update = read(raw, *allowed)
    assert isinstance(update, IncomingMessage)
    return update


def press(raw: Mapping[str, object]) -> ButtonPress:
    update = read(raw)
    assert isinstance(update, ButtonPress)
    return update


def ignored(raw: Mapping[str, object], *allowed: int) -> str:
    update = read(raw, *allowed)
    assert isinstance(update, Ignored)
    return update.reason
