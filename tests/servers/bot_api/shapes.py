"""JSON that only tests need: full chats, changed memberships, menus."""

from collections.abc import Iterable

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.chats import ChatMessage, Member
from bot.playground.bot_api.chats import LocalChat as Chat
from bot.playground.bot_api.shapes import Shape, chat_shape, member_shape, user_shape
from bot.playground.bot_api.values import MenuCommand as BotCommand
from bot.playground.bot_api.values import User


def full_chat_shape(chat: Chat, available_reactions: Iterable[str] | None) -> Shape:
    """Return a ChatFullInfo; None as `available_reactions` allows all of them."""
    gifts = ("unlimited_gifts", "limited_gifts", "unique_gifts", "premium_subscription")
    accepted = dict.fromkeys((*gifts, "gifts_from_channels"), False)
    limited = {}
    if available_reactions is not None:
        limited = {"available_reactions": _reactions(available_reactions)}
    return (
        chat_shape(chat)
        | limited
        | {"accent_color_id": 0, "max_reaction_count": 11, "accepted_gift_types": accepted}
    )


def reaction_shape(
    account: Account, message: ChatMessage, by: User, old: Iterable[str], new: Iterable[str]
) -> Shape:
    """Return a MessageReactionUpdated."""
    return {
        "chat": chat_shape(message.chat),
        "message_id": message.id,
        "user": user_shape(by),
        "date": account.now(),
        "old_reaction": _reactions(old),
        "new_reaction": _reactions(new),
    }


def _reactions(emoji: Iterable[str]) -> list[Shape]:
    return [{"type": "emoji", "emoji": each} for each in emoji]


def commands_shape(commands: Iterable[BotCommand]) -> list[Shape]:
    """Return an array of BotCommand."""
    return [{"command": each.command, "description": each.description} for each in commands]


def membership_shape(account: Account, chat: Chat, by: User, new: Member, old: Member) -> Shape:
    """Return a ChatMemberUpdated."""
    return {
        "chat": chat_shape(chat),
        "from": user_shape(by),
        "date": account.now(),
        "old_chat_member": member_shape(old),
        "new_chat_member": member_shape(new),
    }
