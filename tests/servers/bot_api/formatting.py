"""Texts with entities and inline keyboards: what Telegram refuses and corrects.

Offsets and lengths count UTF-16 units. Markup (`parse_mode`) is not read here: the bot sends
entities. Other markups than inline keyboards are accepted and show nothing.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate, chain

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.parameters import Fields, Parameters, fields_of
from tests.servers.bot_api.values import Button, Entity, FormattedText, Keyboard, utf16_length

MAX_TEXT_UTF16 = 4096
MAX_CAPTION_UTF16 = 1024
_MAX_ENTITIES = 100
_MAX_POSITION = 1_000_000
_WHITESPACE = " \n"
_STYLES = frozenset(
    """
    blockquote bold code date_time expandable_blockquote italic pre spoiler strikethrough text_link
    underline
    """.split()  # noqa: SIM905 - a list of quoted names is harder to read
)
"""What the bot sends. Telegram has others, too, and finds addresses and commands by itself."""
_MAX_BUTTONS = 100
_MAX_CALLBACK_BYTES = 64


def entity_text(text: str, entity: Entity) -> str:
    units = text.encode("utf-16-le", "surrogatepass")
    covered = units[2 * entity.offset : 2 * (entity.offset + entity.length)]
    return covered.decode("utf-16-le", "surrogatepass")


def read_text(given: Parameters, *, may_be_empty: bool) -> FormattedText:
    if not may_be_empty and not given.text("text"):
        raise BadRequestError("message text is empty")
    text = _read(given, "text", "entities")
    if not may_be_empty and not text.text:
        raise BadRequestError("text must be non-empty")
    # Telegram itself counts characters here and UTF-16 units elsewhere: the stricter reading.
    if utf16_length(text.text) > MAX_TEXT_UTF16:
        raise BadRequestError("message is too long")
    return text


def read_caption(given: Parameters) -> FormattedText:
    caption = _read(given, "caption", "caption_entities")
    if utf16_length(caption.text) > MAX_CAPTION_UTF16:
        raise BadRequestError("message caption is too long")
    return caption


def read_quote(reply: Fields) -> FormattedText:
    values = reply.values.get("quote_entities") or []
    if not isinstance(values, list):
        raise BadRequestError("expected an Array of MessageEntity")
    return _formatted(reply.text("quote"), values)


def _read(given: Parameters, text: str, entities: str) -> FormattedText:
    if given.text("parse_mode"):
        raise BadRequestError("can't parse entities: send them as entities")
    values = given.array(entities, "MessageEntity") or []
    return _formatted(given.text(text), values)


def _formatted(text: str, entities: Sequence[object]) -> FormattedText:
    read = [_entity(fields_of(value, "expected an Object")) for value in entities]
    return _trimmed(text, _checked(text, read))


def _entity(fields: Fields) -> Entity:
    offset, length = fields.required_integer("offset"), fields.required_integer("length")
    kind = fields.required_text("type")
    if kind not in _STYLES:
        raise BadRequestError("unsupported type specified")
    return Entity(
        kind,
        offset,
        length,
        url=fields.required_text("url") if kind == "text_link" else "",
        language=fields.text("language") if kind == "pre" else "",
        unix_time=fields.required_integer("unix_time") if kind == "date_time" else 0,
        date_time_format=_date_time_format(fields) if kind == "date_time" else "",
    )


def _date_time_format(fields: Fields) -> str:
    shown = fields.text("date_time_format")
    if not re.fullmatch("r|w?[dD]?[tT]?", shown):
        raise BadRequestError("invalid date_time format specified")
    return shown


def _checked(text: str, entities: Iterable[Entity]) -> list[Entity]:
    """Return the entities that count, sorted; refuse those which point nowhere."""
    bounds = [0, *accumulate(1 + (character > "\uffff") for character in text)]
    kept = []
    for entity in entities:
        if not 0 <= entity.offset <= _MAX_POSITION:
            raise BadRequestError(f"receive an entity with incorrect offset {entity.offset}")
        if not 0 <= entity.length <= _MAX_POSITION:
            raise BadRequestError(f"receive an entity with incorrect length {entity.length}")
        if entity.length:
            _check_bounds(entity, bounds)
            kept.append(entity)
    kept.sort(key=lambda entity: (entity.offset, -entity.length))
    return kept[:_MAX_ENTITIES]


def _check_bounds(entity: Entity, bounds: list[int]) -> None:
    begin, end = entity.offset, entity.offset + entity.length
    if begin > bounds[-1]:
        raise BadRequestError(f"entity begins after the end of the text at UTF-16 offset {begin}")
    if begin not in bounds:
        raise BadRequestError("entity begins in a middle of a UTF-16 symbol")
    where = f"entity beginning at UTF-16 offset {begin}"
    if end > bounds[-1]:
        raise BadRequestError(f"{where} ends after the end of the text at UTF-16 offset {end}")
    if end not in bounds:
        raise BadRequestError(f"{where} ends in a middle of a UTF-16 symbol")


def _trimmed(text: str, entities: list[Entity]) -> FormattedText:
    """Cut whitespace off both ends, at the front only up to the first entity."""
    text = text.rstrip(_WHITESPACE)
    end = utf16_length(text)
    inside = [entity for entity in entities if entity.offset < end]
    blanks = len(text) - len(text.lstrip(_WHITESPACE))
    start = min([blanks, *(entity.offset for entity in inside)])
    moved = [
        replace(
            entity, offset=entity.offset - start, length=min(entity.length, end - entity.offset)
        )
        for entity in inside
    ]
    return FormattedText(text[start:], tuple(moved))


def read_keyboard(given: Parameters) -> Keyboard:
    markup = given.fields("reply_markup", "reply markup")
    rows = markup.values.get("inline_keyboard", []) if markup else []
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise BadRequestError("inline_keyboard must be an Array of Arrays")
    keyboard = tuple(tuple(_button(value) for value in row) for row in rows if row)
    if len(list(chain(*keyboard))) > _MAX_BUTTONS:
        raise BadRequestError("reply markup is too long")
    return keyboard


def _button(value: object) -> Button:
    fields = fields_of(value, "InlineKeyboardButton must be an Object")
    copied = fields.fields("copy_text") if "copy_text" in fields.values else None
    button = Button(
        fields.required_text("text"),
        fields.text("callback_data"),
        fields.text("url"),
        copied.required_text("text") if copied else "",
    )
    if not (button.callback_data or button.url or button.copies):
        raise BadRequestError("Text buttons are unallowed in the inline keyboard")
    if len(button.callback_data.encode()) > _MAX_CALLBACK_BYTES:
        raise BadRequestError("BUTTON_DATA_INVALID")
    return button
