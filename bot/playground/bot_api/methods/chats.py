"""What the bot may ask about a chat and its members."""

from bot.playground.bot_api.chats import Member
from bot.playground.bot_api.errors import BadRequestError
from bot.playground.bot_api.parameters import Parameters
from bot.playground.bot_api.shapes import full_chat_shape, member_shape
from bot.playground.bot_api.world import World


async def get_chat(world: World, given: Parameters) -> object:
    """Describe a chat."""
    return full_chat_shape(world.chat(given.text("chat_id")))


async def get_chat_member(world: World, given: Parameters) -> object:
    """Describe somebody's standing in a chat; who is known but not there has left."""
    user_id = given.integer("user_id")
    if user_id <= 0:
        raise BadRequestError("invalid user_id specified")
    chat = world.open_chat(given.text("chat_id"))
    if member := chat.members.get(user_id):
        return member_shape(member)
    if user := world.users.get(user_id):
        return member_shape(Member(user, "left"))
    raise BadRequestError("user not found")


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
