"""Who asks for a change, as the rule in `memory.ownership` wants to know it."""

from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.call_context import Asker


def asker_of(asked: IncomingMessage | ButtonPress, telegram: Chat) -> Asker:
    """Return who asks; Telegram is asked only when the rule needs to know.

    The anonymous admin account is no admin: anybody behind it could be meant.
    """
    sender = asked.sender

    async def is_admin() -> bool:
        return sender.is_person and await telegram.is_group_admin(asked.chat_id, sender.id)

    return Asker(sender.id, asked.is_group, is_admin)
