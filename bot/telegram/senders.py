"""Who speaks: Telegram's users and chats as our `Sender`, with names fit for a prompt and a log."""

import unicodedata

import telegram

from bot.reply.utf16 import well_formed
from bot.telegram.updates import Sender

_MAX_NAME = 64
# Persian joins its letters with one, emoji with the other; all other format characters only hide.
_JOINERS = "\u200c\u200d"
_TO_SPACE = {"Cc", "Zl", "Zp"}


def message_sender(message: telegram.Message) -> Sender | None:
    """Return who wrote it, None for a bot.

    A channel or a group that speaks in its own name comes with a made-up bot as its user, so it is
    looked at first. An anonymous admin speaks as the group itself.
    """
    if message.sender_chat:
        chat = message.sender_chat
        name = clean_name(chat.title or "") or chat.username or str(chat.id)
        return Sender(id=chat.id, name=name, is_person=False)
    if message.from_user is None or message.from_user.is_bot:
        return None
    return person(message.from_user)


def person(user: telegram.User) -> Sender:
    """Return a person; where nothing of the name can be shown, the username or the id stands in."""
    return Sender(
        id=user.id,
        name=clean_name(user.full_name) or user.username or str(user.id),
        first_name=clean_name(user.first_name),
        last_name=clean_name(user.last_name or ""),
        language=user.language_code or "en",
    )


def clean_name(name: str, max_chars: int = _MAX_NAME) -> str:
    """Return one line of visible characters: a name is text from a stranger."""
    shown = "".join(_shown(character) for character in well_formed(name))
    return " ".join(shown.split())[:max_chars].rstrip()


def _shown(character: str) -> str:
    category = unicodedata.category(character)
    if category in _TO_SPACE:
        return " "
    if category == "Cf" and character not in _JOINERS:
        return ""
    return character
