"""What of a message is indexed, by words and by meaning alike: its date, its speaker, its words.

A date in the text makes "what did I say in May" findable; see README's decisions.
"""

from datetime import UTC, datetime

from memory.message import Message
from memory.search.hybrid import Record

RECIPE = "date speaker words"
"""Part of the stamp of stored vectors: another recipe means embedding anew."""

SESSION_PAUSE_S = 3600
"""Silence after which talk counts as a new sitting: neighbours lend each other words within one."""


def indexed_text(message: Message) -> str:
    """Return the text that is indexed for a message."""
    said_on = datetime.fromtimestamp(message.sent_at, UTC)
    speaker = message.sender_name or message.role
    return f"{said_on.day} {said_on:%B %Y} {speaker}: {message.text}"


def record_of(message: Message, session: int) -> Record:
    """Return what the index takes of a message."""
    return Record(indexed_text(message), session, by_assistant=message.role == "assistant")
