"""Says in words what stands in a message without text: a sticker, a place, a poll, a rich message.

The words are the same in every language.
"""

import telegram

from bot.telegram.rich_text import plain_text

RICH_MESSAGE = "rich_message"
"""Newer than the Bot API that PTB knows: its content is read from the raw JSON."""


def spelled(message: telegram.Message) -> str:
    """Return the words for the content of a message, "" if we have none for it."""
    words = ""
    if RICH_MESSAGE in message.api_kwargs:
        words = plain_text(message.api_kwargs[RICH_MESSAGE])
    elif message.sticker:
        words = message.sticker.emoji or ""
    elif message.venue:  # before the location, which a venue also sets
        venue = message.venue
        words = f"📍 {venue.title}, {venue.address} ({_place(venue.location)})"
    elif message.location:
        words = f"📍 {_place(message.location)}"
    elif message.poll:
        options = (f"- {option.text}" for option in message.poll.options)
        words = "\n".join((f"📊 {message.poll.question}", *options))
    elif message.dice:
        words = f"{message.dice.emoji} {message.dice.value}"
    return words


def _place(location: telegram.Location) -> str:
    accuracy = location.horizontal_accuracy
    around = f" (±{accuracy:.0f} m)" if accuracy else ""
    return f"{location.latitude:.4f}, {location.longitude:.4f}{around}"
