"""What the bot sends, edits and deletes: texts, files, drafts and answers to buttons."""

from dataclasses import replace
from io import BytesIO
from typing import Any

from PIL import Image, UnidentifiedImageError
from telegram.constants import ChatAction

from tests.servers.bot_api.chats import Chat, DraftMessage, Message
from tests.servers.bot_api.contents import find_quote
from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.formatting import read_caption, read_keyboard, read_quote, read_text
from tests.servers.bot_api.parameters import Fields, Parameters
from tests.servers.bot_api.shapes import file_shape, message_shape
from tests.servers.bot_api.values import (
    FormattedText,
    Media,
    MediaKind,
    Quote,
    StoredFile,
    utf16_length,
)
from tests.servers.bot_api.world import World

_MAX_ANSWER_LENGTH = 200
_MAX_QUOTE_UTF16 = 1024
_MAX_RICH_CHARS = 32_768
_DELETABLE_S = 48 * 60 * 60
_GENERAL_TOPIC = 1
_ACTIONS = frozenset(action.value for action in ChatAction)
_MAX_DOWNLOAD_BYTES = 20 * 2**20
_MAX_PHOTO_BYTES = 10 * 2**20
_MAX_SIDES = 10_000
_MAX_RATIO = 20


async def send_message(world: World, given: Parameters) -> object:
    return await send(world, addressed(world, given), read_text(given, may_be_empty=False))


async def send_rich_message(world: World, given: Parameters) -> object:
    """Send a rich message of Markdown, as the bot does; the texts of its refusals are ours."""
    fields = given.fields("rich_message", "InputRichMessage")
    markdown = fields.required_text("markdown") if fields else ""
    if not markdown:
        raise BadRequestError("rich message is empty")
    if len(markdown) > _MAX_RICH_CHARS:
        raise BadRequestError("RICH_MESSAGE_TOO_LONG")
    content = {"rich_message": {"blocks": [{"type": "paragraph", "text": markdown}]}}
    return await send(world, replace(addressed(world, given), content=content), FormattedText(""))


async def send_message_draft(world: World, given: Parameters) -> object:
    """Show a draft to a person; only private chats have drafts."""
    text = read_text(given, may_be_empty=True)
    chat = world.open_chat(given.text("chat_id"))
    if chat.kind != "private":
        raise BadRequestError("TEXTDRAFT_PEER_INVALID")
    if not given.integer("draft_id"):
        raise BadRequestError("RANDOM_ID_INVALID")
    topic_id = _topic_id(chat, given)
    chat.count_showing()
    stops = {name: given.flag(name) for name in ("can_stop", "keep_on_stop")}
    chat.show_draft(DraftMessage(given.integer("draft_id"), text, **stops), topic_id)
    await world.account.changes.tell()
    return True


async def send_chat_action(world: World, given: Parameters) -> object:
    if given.text("action").lower() not in _ACTIONS:
        raise BadRequestError("wrong parameter action in request")
    chat = world.open_chat(given.text("chat_id"))
    if given.integer("message_thread_id") != _GENERAL_TOPIC:
        _topic_id(chat, given)
    chat.count_showing()
    return True


async def edit_message_text(world: World, given: Parameters) -> object:
    text = read_text(given, may_be_empty=False)
    keyboard = read_keyboard(given)
    message = own_message(world, given)
    if message.media:
        raise BadRequestError("there is no text in the message to edit")
    edited = replace(message, text=text.text, entities=text.entities, keyboard=keyboard)
    return await change(world, message, edited)


async def delete_message(world: World, given: Parameters) -> object:
    """Delete a message: the bot's own, or in a group where it is an admin any message."""
    chat = world.open_chat(given.text("chat_id"))
    message, bot = message_in(chat, given, "message to delete"), world.account.bot
    if message.sender != bot and chat.kind != "private" and not chat.members[bot.id].is_admin:
        raise BadRequestError("message can't be deleted")
    if world.account.now() - message.sent_at >= _DELETABLE_S:
        raise BadRequestError("message can't be deleted for everyone")
    chat.remove(message)
    await world.account.changes.tell()
    return True


async def copy_message(world: World, given: Parameters) -> object:
    """Send the content of a message again, without its origin."""
    source = world.open_chat(given.text("from_chat_id"))
    message = message_in(source, given, "message to copy")
    if message.service:
        raise BadRequestError("message can't be copied")
    text = FormattedText(message.text, message.entities)
    if message.media and "caption" in given.values:
        text = read_caption(given)
    copied = replace(addressed(world, given), media=message.media, content=message.content)
    sent = await send(world, copied, text)
    return {"message_id": sent["message_id"]}


async def answer_callback_query(world: World, given: Parameters) -> object:
    press = world.presses.get(given.text("callback_query_id"))
    if press is None or press.answer is not None:
        raise BadRequestError(
            "query is too old and response timeout expired or query ID is invalid"
        )
    if len(given.text("text")) > _MAX_ANSWER_LENGTH:
        raise BadRequestError("MESSAGE_TOO_LONG")
    press.answer = given.text("text")
    await world.account.changes.tell()
    return True


async def send(world: World, message: Message, text: FormattedText) -> dict[str, Any]:
    sent = message.chat.add(replace(message, text=text.text, entities=text.entities))
    await world.account.changes.tell()
    return message_shape(sent)


def message_in(chat: Chat, given: Parameters, what: str) -> Message:
    """Return the message that a call names; `what` names it in the refusal."""
    message = chat.message(given.integer("message_id"))
    if message is None:
        raise BadRequestError(f"{what} not found")
    return message


async def change(world: World, message: Message, edited: Message) -> object:
    if edited == message:
        raise BadRequestError(
            "message is not modified: specified new message content and reply markup are exactly "
            "the same as a current content and reply markup of the message"
        )
    edited = replace(edited, edited_at=world.account.now())
    edited.chat.change(edited)
    await world.account.changes.tell()
    return message_shape(edited)


def addressed(world: World, given: Parameters) -> Message:
    """Return a message of the bot with everything except its content."""
    keyboard = read_keyboard(given)
    chat = world.open_chat(given.text("chat_id"))
    topic_id = _topic_id(chat, given)
    message = Message(chat, world.account.bot, keyboard=keyboard, topic_id=topic_id)
    return _replying(message, given)


def _topic_id(chat: Chat, given: Parameters) -> int:
    """Return the requested topic; without topics a thread id is ignored."""
    topic_id = given.integer("message_thread_id")
    if not topic_id or not (chat.is_forum or chat.kind == "private"):
        return 0
    if topic_id not in chat.topics:  # neither is General, which has no id when one sends
        raise BadRequestError("message thread not found")
    return topic_id


def _replying(message: Message, given: Parameters) -> Message:
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
    return replace(message, topic_id=topic_id, reply_to=replied, quote=_quote(replied, reply))


def _quote(replied: Message, reply: Fields) -> Quote | None:
    wanted = read_quote(reply)
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


async def send_document(world: World, given: Parameters) -> object:
    return await _send(world, given, "document")


async def send_photo(world: World, given: Parameters) -> object:
    """Send a picture, which Telegram decodes."""
    if upload := given.upload("photo"):
        _check_photo(upload.content)
    return await _send(world, given, "photo")


async def send_voice(world: World, given: Parameters) -> object:
    """Send a voice note; another format than OGG with Opus becomes a music file."""
    upload = given.upload("voice")
    is_voice = upload is None or upload.content.startswith(b"OggS")
    return await _send(world, given, "voice", "voice" if is_voice else "audio")


async def _send(
    world: World, given: Parameters, name: MediaKind, kind: MediaKind | None = None
) -> object:
    caption = read_caption(given)
    message = addressed(world, given)
    media = Media(kind or name, _file_of(world, given, name))
    return await send(world, replace(message, media=media), caption)


async def get_file(world: World, given: Parameters) -> object:
    file = world.files.get(given.text("file_id"))
    if file is None:
        raise BadRequestError("invalid file_id")
    if len(file.content) > _MAX_DOWNLOAD_BYTES:
        raise BadRequestError("file is too big")
    return file_shape(file)


def _file_of(world: World, given: Parameters, name: str) -> StoredFile:
    if upload := given.upload(name):
        return world.store(upload)
    if not given.text(name):
        raise BadRequestError(f"there is no {name} in the request")
    file = world.files.get(given.text(name))
    if file is None:
        raise BadRequestError("wrong file identifier/HTTP URL specified")
    return file


def _check_photo(content: bytes) -> None:
    try:
        with Image.open(BytesIO(content)) as picture:
            picture.load()
            width, height = picture.size
    except (UnidentifiedImageError, OSError, SyntaxError):
        raise BadRequestError("IMAGE_PROCESS_FAILED") from None
    if len(content) > _MAX_PHOTO_BYTES:
        raise BadRequestError("PHOTO_SAVE_FILE_INVALID")
    is_long = max(width, height) > _MAX_RATIO * min(width, height)
    if is_long or width + height > _MAX_SIDES:
        raise BadRequestError("PHOTO_INVALID_DIMENSIONS")
