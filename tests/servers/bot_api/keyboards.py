"""Inline keyboards: from a call's `reply_markup` to buttons, or Telegram's refusal.

Other markups (reply keyboards, force reply) are accepted and show nothing.
"""

from itertools import chain

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.parameters import Parameters, fields_of
from tests.servers.bot_api.values import Button, Keyboard

_MAX_BUTTONS = 100
_MAX_CALLBACK_BYTES = 64


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
