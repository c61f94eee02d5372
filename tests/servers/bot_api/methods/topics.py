"""Topics: the bot names them, in forums and in private chats that have topics."""

from dataclasses import replace

from tests.servers.bot_api.chats import Chat
from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.world import World

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
