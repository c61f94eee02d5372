"""Sending, editing and deleting messages, with all of Telegram's refusals."""

from collections.abc import Mapping
from dataclasses import replace

from bot.playground.bot_api import methods
from bot.playground.bot_api.chats import ChatMessage as Message
from bot.playground.bot_api.chats import LocalChat as Chat
from bot.playground.bot_api.methods import change, message_in, send
from bot.playground.bot_api.people import utf16_length
from bot.playground.bot_api.values import BadRequestError, FormattedText, User
from tests.servers.bot_api import chats
from tests.servers.bot_api.contents import Quote, find_quote
from tests.servers.bot_api.formatting import read_caption, read_quote, read_text
from tests.servers.bot_api.keyboards import read_keyboard
from tests.servers.bot_api.parameters import Fields, Parameters
from tests.servers.bot_api.world import World

_MAX_ANSWER_LENGTH = 200
_MAX_QUOTE_UTF16 = 1024
_MAX_DELETED = 100
_MAX_DOWNLOAD_BYTES = 20 * 2**20
_DELETABLE_S = 48 * 60 * 60
_GENERAL_TOPIC = 1
_ACTIONS = {
    "choose_sticker",
    "find_location",
    "record_video",
    "record_video_note",
    "record_voice",
    "typing",
    "upload_document",
    "upload_photo",
    "upload_video",
    "upload_video_note",
    "upload_voice",
}


async def send_message(world: World, given: Parameters) -> object:
    """Send a text."""
    text = read_text(given, world.users, may_be_empty=False)
    message = addressed(world, given)
    return await send(world, message, text)


async def send_message_draft(world: World, given: Parameters) -> object:
    """Show a draft to a person; only private chats have drafts."""
    read_text(given, world.users, may_be_empty=True)
    chat = world.open_chat(given.text("chat_id"))
    if chat.kind != "private":
        raise BadRequestError("TEXTDRAFT_PEER_INVALID")
    if not given.integer("draft_id"):
        raise BadRequestError("RANDOM_ID_INVALID")
    _topic_id(chat, given)
    chat.count_showing()
    return await methods.send_message_draft(world, given)


async def send_chat_action(world: World, given: Parameters) -> object:
    """Show that the bot is busy."""
    if given.text("action").lower() not in _ACTIONS:
        raise BadRequestError("wrong parameter action in request")
    chat = world.open_chat(given.text("chat_id"))
    if given.integer("message_thread_id") != _GENERAL_TOPIC:
        _topic_id(chat, given)
    chat.count_showing()
    return await methods.send_chat_action(world, given)


async def edit_message_text(world: World, given: Parameters) -> object:
    """Change the text and buttons of one of the bot's messages."""
    text = read_text(given, world.users, may_be_empty=False)
    keyboard = read_keyboard(given)
    message = own_message(world, given)
    if message.media:
        raise BadRequestError("there is no text in the message to edit")
    edited = replace(message, text=text.text, entities=text.entities, keyboard=keyboard)
    return await change(world, message, edited)


async def edit_message_reply_markup(world: World, given: Parameters) -> object:
    """Change the buttons under one of the bot's messages."""
    keyboard = read_keyboard(given)
    message = own_message(world, given)
    return await change(world, message, replace(message, keyboard=keyboard))


async def delete_message(world: World, given: Parameters) -> object:
    """Delete a message: the bot's own, or in a group where it is an admin any message."""
    chat = world.open_chat(given.text("chat_id"))
    _check_deletable(world, message_in(chat, given, "message to delete"))
    return await methods.delete_message(world, given)


async def delete_messages(world: World, given: Parameters) -> object:
    """Delete several messages; ids without a message are skipped."""
    chat = world.open_chat(given.text("chat_id"))
    ids = given.array("message_ids", "message identifiers") or []
    if not ids:
        raise BadRequestError("message identifiers are not specified")
    if len(ids) > _MAX_DELETED:
        raise BadRequestError("too many message identifiers specified")
    found = [message for each in ids if (message := chat.message(int(str(each))))]
    for message in found:
        _check_deletable(world, message)
    for message in found:
        chat.remove(message)
    await world.account.changes.tell()
    return True


async def copy_message(world: World, given: Parameters) -> object:
    """Send the content of a message again, without its origin."""
    source = world.open_chat(given.text("from_chat_id"))
    message = message_in(source, given, "message to copy")
    if isinstance(message, chats.Message) and message.service:
        raise BadRequestError("message can't be copied")
    text = FormattedText(message.text, message.entities)
    if message.media and "caption" in given.values:
        text = read_caption(given, world.users)
    content = message.content if isinstance(message, chats.Message) else {}
    copied = replace(addressed(world, given), media=message.media, content=content)
    sent = await send(world, copied, text)
    return {"message_id": sent["message_id"]}


async def answer_callback_query(world: World, given: Parameters) -> object:
    """Answer a pressed button, once."""
    press = world.presses.get(given.text("callback_query_id"))
    is_open = press is not None and press.answer is None
    if is_open and len(given.text("text")) > _MAX_ANSWER_LENGTH:
        raise BadRequestError("MESSAGE_TOO_LONG")
    return await methods.answer_callback_query(world, given)


async def get_file(world: World, given: Parameters) -> object:
    """Return the path of a file."""
    file = world.files.get(given.text("file_id"))
    if file is not None and len(file.content) > _MAX_DOWNLOAD_BYTES:
        raise BadRequestError("file is too big")
    return await methods.get_file(world, given)


def addressed(world: World, given: Parameters) -> chats.Message:
    """Return a message of the bot with everything except its content."""
    keyboard = read_keyboard(given)
    chat = world.open_chat(given.text("chat_id"))
    topic_id = _topic_id(chat, given)
    message = chats.Message(chat, world.account.bot, keyboard=keyboard, topic_id=topic_id)
    return _replying(message, given, world.users)


def _check_deletable(world: World, message: Message) -> None:
    chat, bot = message.chat, world.account.bot
    if message.sender != bot and chat.kind != "private" and not chat.members[bot.id].is_admin:
        raise BadRequestError("message can't be deleted")
    if world.account.now() - message.sent_at >= _DELETABLE_S:
        raise BadRequestError("message can't be deleted for everyone")


def _topic_id(chat: Chat, given: Parameters) -> int:
    """Return the requested topic; without topics a thread id is ignored."""
    topic_id = given.integer("message_thread_id")
    if not topic_id or not (chat.is_forum or chat.kind == "private"):
        return 0
    if topic_id not in chat.topics:  # neither is General, which has no id when one sends
        raise BadRequestError("message thread not found")
    return topic_id


def _replying(
    message: chats.Message, given: Parameters, users: Mapping[int, User]
) -> chats.Message:
    """Return the message as a reply, in the topic of the message that it replies to."""
    reply = given.fields("reply_parameters", "reply parameters")
    if reply is None or not reply.values:
        return message
    message_id = reply.required_integer("message_id")
    elsewhere = reply.text("chat_id") not in ("", str(message.chat.id))
    replied = None if elsewhere else message.chat.message(message_id)
    if replied is None:
        if elsewhere or not reply.flag("allow_sending_without_reply"):
            raise BadRequestError("message to be replied not found")
        return message
    topic_id = message.topic_id or replied.topic_id
    return replace(
        message, topic_id=topic_id, reply_to=replied, quote=_quote(replied, reply, users)
    )


def _quote(replied: Message, reply: Fields, users: Mapping[int, User]) -> Quote | None:
    wanted = read_quote(reply, users)
    if not wanted.text:
        return None
    quote = find_quote(replied, wanted.text, wanted.entities)
    if quote is None or utf16_length(wanted.text) > _MAX_QUOTE_UTF16:
        raise BadRequestError("QUOTE_TEXT_INVALID")
    return quote


def own_message(world: World, given: Parameters) -> Message:
    chat = world.open_chat(given.text("chat_id"))
    message = message_in(chat, given, "message to edit")
    if message.sender != world.account.bot:
        raise BadRequestError("message can't be edited")
    return message
