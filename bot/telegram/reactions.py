"""Reads reactions: only a new 👎 of a person means anything to us."""

from collections.abc import Mapping, Sequence
from typing import Any

import telegram
from telegram.constants import ChatType, ReactionEmoji

from bot.telegram.senders import read_person
from bot.telegram.updates import ThumbsDown

_MAX_REACTIONS = 16
"""A person has at most three reactions to a message."""


def read_reaction(update_id: int, raw: Mapping[str, Any]) -> ThumbsDown | None:
    """Return a 👎 that a person has just set, None for any other change.

    Reactions in the name of a chat, and those of bots, are such changes. Raise `LookupError`,
    `TypeError` or `AttributeError` if it is not as the Bot API describes it.
    """
    if not raw.get("user") or not _dislikes(raw["new_reaction"]) or _dislikes(raw["old_reaction"]):
        return None
    user = telegram.User.de_json(raw["user"])
    if user.is_bot:
        return None
    return ThumbsDown(
        update_id,
        raw["chat"]["id"],
        raw["chat"]["type"] != ChatType.PRIVATE,
        raw["message_id"],
        read_person(user),
        raw["date"],
    )


def _dislikes(reactions: Sequence[Mapping[str, object]]) -> bool:
    return any(
        each.get("emoji") == ReactionEmoji.THUMBS_DOWN for each in reactions[:_MAX_REACTIONS]
    )
