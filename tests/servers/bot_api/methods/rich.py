"""Rich messages: one of HTML, Markdown and blocks, within Telegram's limits.

The texts of the refusals are ours, because Telegram does not publish its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bot.playground.bot_api.methods import change, send
from bot.playground.bot_api.shapes import Shape
from bot.playground.bot_api.values import BadRequestError, FormattedText
from tests.servers.bot_api import chats
from tests.servers.bot_api.contents import RICH_BLOCKS, RICH_MEDIA
from tests.servers.bot_api.keyboards import read_keyboard
from tests.servers.bot_api.methods import messages
from tests.servers.bot_api.parameters import Fields, Parameters, fields_of
from tests.servers.bot_api.world import World

_MAX_CHARS = 32_768
_MAX_BLOCKS = 500
_MAX_DEPTH = 16
_MAX_MEDIA = 50
_MAX_COLUMNS = 20


async def send_rich_message(world: World, given: Parameters) -> object:
    """Send a rich message; it has no text, only blocks."""
    content = _read(given)
    message = messages.addressed(world, given)
    return await send(world, replace(message, content=content), FormattedText(""))


async def edit_message_text(world: World, given: Parameters) -> object:
    """Change the text of one of the bot's messages, also into a rich message."""
    if not given.values.get("rich_message"):
        return await messages.edit_message_text(world, given)
    content = _read(given)
    message = messages.own_message(world, given)
    assert isinstance(message, chats.Message)
    keyboard = read_keyboard(given)
    edited = replace(message, text="", entities=(), keyboard=keyboard, content=content)
    return await change(world, message, edited)


def _read(given: Parameters) -> Shape:
    """Return the `rich_message` of a call as a message has it, or refuse it."""
    fields = given.fields("rich_message", "InputRichMessage")
    if fields is None:
        raise BadRequestError("rich message is empty")
    written = [name for name in ("html", "markdown", "blocks") if fields.values.get(name)]
    if len(written) != 1:
        raise BadRequestError("exactly one of html, markdown and blocks must be specified")
    blocks: object = [{"type": "paragraph", "text": fields.values[written[0]]}]
    if written == ["blocks"]:
        blocks = fields.values["blocks"]
    found = list(_blocks(blocks, 1))
    columns = [len(row) for block in found for row in block.rows]
    attached = fields.values.get("media", [])
    limits = {
        "RICH_MESSAGE_TOO_LONG": (sum(block.chars for block in found), _MAX_CHARS),
        "RICH_MESSAGE_TOO_MANY_BLOCKS": (sum(block.count for block in found), _MAX_BLOCKS),
        "RICH_MESSAGE_TOO_DEEP": (max((block.depth for block in found), default=0), _MAX_DEPTH),
        "RICH_MESSAGE_TOO_MANY_COLUMNS": (max(columns, default=0), _MAX_COLUMNS),
        "RICH_MESSAGE_TOO_MANY_MEDIA": (
            sum(block.is_media for block in found)
            + (len(attached) if isinstance(attached, list) else 0),
            _MAX_MEDIA,
        ),
    }
    for refusal, (value, most) in limits.items():
        if value > most:
            raise BadRequestError(refusal)
    return {"rich_message": {"blocks": blocks}}


@dataclass(frozen=True, slots=True)
class _Block:
    """What counts of one block without those inside it; items and rows count as blocks."""

    chars: int
    count: int
    depth: int
    rows: tuple[list[object], ...]
    is_media: bool


def _blocks(values: object, depth: int) -> Iterator[_Block]:
    """Yield blocks and those inside them."""
    for value in _array(values, "RichBlock"):
        block = fields_of(value, "object expected as RichBlock")
        kind = block.required_text("type")
        if kind not in RICH_BLOCKS:
            raise BadRequestError(f"unsupported rich block type {kind}")
        rows = tuple(_array(row, "cells") for row in _array(block.values.get("cells", []), "rows"))
        items = [
            fields_of(item, "object expected as item")
            for item in _array(block.values.get("items", []), "items")
        ]
        texts = [_text(fields_of(cell, "object expected as cell"), 0) for r in rows for cell in r]
        yield _Block(
            sum([_text(block, 0), *texts]),
            1 + len(rows) + len(items),
            depth,
            rows,
            kind in RICH_MEDIA,
        )
        yield from _blocks(block.values.get("blocks", []), depth + 1)
        for item in items:
            yield from _blocks(item.values.get("blocks", []), depth + 1)


def _text(fields: Fields, depth: int) -> int:
    """Return how many characters the texts and formulas of an object have."""
    names = ("text", "summary", "caption", "credit", "expression")
    return sum(_length(fields.values.get(name, ""), depth) for name in names)


def _length(text: object, depth: int) -> int:
    if depth > _MAX_DEPTH:
        raise BadRequestError("RICH_MESSAGE_TOO_DEEP")
    if isinstance(text, str):
        return len(text)
    if isinstance(text, list):
        return sum(_length(part, depth + 1) for part in text)
    return _text(fields_of(text, "expected a RichText"), depth + 1)


def _array(value: object, what: str) -> list[object]:
    if not isinstance(value, list):
        raise BadRequestError(f"expected an Array of {what}")
    return value
