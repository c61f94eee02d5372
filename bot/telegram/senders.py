"""Who wrote a message, and names as one line of visible characters."""

import unicodedata

import telegram

from bot.reply.utf16 import well_formed
from bot.telegram.updates import Sender

_MAX_NAME_CHARS = 64
# Persian letters are joined by one, emoji by the other. All other format characters only hide.
_JOINERS = "\u200c\u200d"
_TO_SPACE = {"Cc", "Zl", "Zp"}


def read_sender(message: telegram.Message) -> Sender | None:
    """Return the author of a message, None for a bot.

    `sender_chat` is read first: a channel or group that writes in its own name has a made-up bot as
    its user. An anonymous admin writes as the group itself.
    """
    if message.sender_chat:
        chat = message.sender_chat
        name = clean_name(chat.title or "") or chat.username or str(chat.id)
        return Sender(id=chat.id, name=name, is_person=False)
    if message.from_user is None or message.from_user.is_bot:
        return None
    return read_person(message.from_user)


def read_person(user: telegram.User) -> Sender:
    """Return a person. If nothing of the name is visible, username or id is used as the name."""
    return Sender(
        id=user.id,
        name=clean_name(user.full_name) or user.username or str(user.id),
        first_name=clean_name(user.first_name),
        last_name=clean_name(user.last_name or ""),
        language=user.language_code or "en",
    )


def clean_name(name: str, max_chars: int = _MAX_NAME_CHARS) -> str:
    """Return one line of visible characters: names are untrusted text in prompts and logs."""
    shown = "".join(_visible(character) for character in well_formed(name))
    return " ".join(shown.split())[:max_chars].rstrip()


def _visible(character: str) -> str:
    category = unicodedata.category(character)
    if category in _TO_SPACE:
        return " "
    if category == "Cf" and character not in _JOINERS:
        return ""
    return character
