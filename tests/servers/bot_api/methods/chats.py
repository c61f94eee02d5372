"""What the bot may ask about the members of a chat, and leaving it."""

from functools import partial

from tests.servers.bot_api.chats import Member
from tests.servers.bot_api.errors import BadRequestError, ForbiddenError
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.shapes import member_shape
from tests.servers.bot_api.world import World


async def get_chat_member(world: World, given: Parameters) -> object:
    """Describe a user's membership in a chat; a user of this server outside the chat has left."""
    user_id = given.integer("user_id")
    if user_id <= 0:
        raise BadRequestError("invalid user_id specified")
    chat = world.open_chat(given.text("chat_id"))
    if member := chat.members.get(user_id):
        return member_shape(member)
    if user := world.users.get(user_id):
        return member_shape(Member(user, "left"))
    raise BadRequestError("user not found")


async def leave_chat(world: World, given: Parameters) -> object:
    chat = world.open_chat(given.text("chat_id"))
    if chat.kind == "private":
        raise BadRequestError("chat member status can't be changed in private chats")
    chat.closed = partial(ForbiddenError, f"bot is not a member of the {chat.kind} chat")
    await world.move_bot(chat, "left", by=world.account.bot)
    return True
