"""Members, reactions and topics of a chat, and leaving it."""

from dataclasses import replace
from functools import partial

from telegram.constants import ReactionEmoji

from tests.servers.bot_api.chats import Chat, Member
from tests.servers.bot_api.errors import ApiError, BadRequestError
from tests.servers.bot_api.methods.messages import message_in
from tests.servers.bot_api.parameters import Fields, Parameters, fields_of
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
    chat.closed = partial(ApiError, 403, f"Forbidden: bot is not a member of the {chat.kind} chat")
    await world.move_bot(chat, "left", by=world.account.bot)
    return True


_EMOJI = frozenset(emoji.value for emoji in ReactionEmoji)


async def set_message_reaction(world: World, given: Parameters) -> object:
    """Set the bot's reaction to a message in place of its former one; none takes it away."""
    chat = world.open_chat(given.text("chat_id"))
    message = message_in(chat, given, "message to react")
    values = given.array("reaction", "ReactionType") or []
    emoji = tuple(_emoji(fields_of(value, "expected an Object")) for value in values)
    if len(emoji) > 1:
        raise BadRequestError("REACTIONS_TOO_MANY")
    allowed = _EMOJI if chat.available_reactions is None else set(chat.available_reactions)
    if message.service or not set(emoji) <= allowed & _EMOJI:
        raise BadRequestError("REACTION_INVALID")
    chat.react(message, world.account.bot, emoji)
    await world.account.changes.tell()
    return True


def _emoji(fields: Fields) -> str:
    if fields.required_text("type") != "emoji":  # bots may send no others without Premium
        raise BadRequestError("REACTION_INVALID")
    return fields.required_text("emoji")


_MAX_NAME_LENGTH = 128


async def edit_forum_topic(world: World, given: Parameters) -> object:
    """Name a topic; in a group only admins may."""
    chat = _forum(world, given)
    topic = chat.topics.get(given.integer("message_thread_id"))
    if topic is None:
        raise BadRequestError("TOPIC_ID_INVALID")
    if "name" not in given.values or given.text("name") == topic.name:
        raise BadRequestError("TOPIC_NOT_MODIFIED")
    chat.rename_topic(replace(topic, name=_name(given)), world.account.bot)
    await world.account.changes.tell()
    return True


def _forum(world: World, given: Parameters) -> Chat:
    chat = world.open_chat(given.text("chat_id"))
    if not chat.has_topics:
        raise BadRequestError("the chat is not a forum")
    if chat.kind != "private" and not chat.members[world.account.bot.id].is_admin:
        raise BadRequestError("not enough rights to manage topics")
    return chat


def _name(given: Parameters) -> str:
    name = given.text("name").strip()
    if not name:
        raise BadRequestError("TOPIC_TITLE_EMPTY")
    if len(name) > _MAX_NAME_LENGTH:
        raise BadRequestError("TOPIC_TITLE_TOO_LONG")
    return name
