"""What the bot may ask about a chat and its members."""

from functools import partial

from bot.playground.bot_api import methods
from bot.playground.bot_api.shapes import member_shape
from bot.playground.bot_api.values import BadRequestError
from tests.servers.bot_api.errors import ForbiddenError
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.shapes import full_chat_shape
from tests.servers.bot_api.world import World


async def get_chat(world: World, given: Parameters) -> object:
    """Describe a chat."""
    chat = world.chat(given.text("chat_id"))
    return full_chat_shape(chat, chat.available_reactions)


async def get_chat_member(world: World, given: Parameters) -> object:
    """Describe a user's membership in a chat; a user of this server outside the chat has left."""
    if given.integer("user_id") <= 0:
        raise BadRequestError("invalid user_id specified")
    return await methods.get_chat_member(world, given)


async def leave_chat(world: World, given: Parameters) -> object:
    """Leave a group or channel."""
    chat = world.open_chat(given.text("chat_id"))
    if chat.kind == "private":
        raise BadRequestError("chat member status can't be changed in private chats")
    chat.closed = partial(ForbiddenError, f"bot is not a member of the {chat.kind} chat")
    await world.move_bot(chat, "left", by=world.account.bot)
    return True


async def get_chat_administrators(world: World, given: Parameters) -> object:
    """List the admins of a group, other bots left out."""
    chat = world.open_chat(given.text("chat_id"))
    if chat.kind == "private":
        raise BadRequestError("there are no administrators in the private chat")
    return [
        member_shape(member)
        for member in chat.members.values()
        if member.is_admin and (not member.user.is_bot or member.user == world.account.bot)
    ]
