"""Reads what people do without writing: they stop a draft, or add us to a group."""

from collections.abc import Mapping
from typing import Any

import telegram
from telegram.constants import ChatType

from bot.telegram.message_content import is_present
from bot.telegram.senders import read_person
from bot.telegram.updates import IncomingMessage, StoppedDraft

GROUPS = frozenset({ChatType.GROUP, ChatType.SUPERGROUP})


def read_stop(update_id: int, sent: Mapping[str, Any]) -> StoppedDraft:
    """Read the press of Stop under a draft; raise `LookupError` or `TypeError`."""
    return StoppedDraft(
        update_id, sent["chat"]["id"], sent.get("message_thread_id", 0), sent["draft_id"]
    )


def read_membership(update_id: int, change: telegram.ChatMemberUpdated) -> IncomingMessage | None:
    """Read being added to a group as /start there; return None for other changes."""
    is_new = is_present(change.new_chat_member) and not is_present(change.old_chat_member)
    if not is_new or change.chat.type not in GROUPS or change.from_user.is_bot:
        return None
    return IncomingMessage(
        update_id=update_id,
        chat_id=change.chat.id,
        topic_id=0,
        is_group=True,
        message_id=0,
        sent_at=int(change.date.timestamp()),
        sender=read_person(change.from_user),
        kind="command",
        text="",
        command="start",
    )
