"""The methods of the Bot API that the bot uses while it polls, one small function each.

A method reads its parameters, changes the world, and returns its result as JSON, or raises
`ApiError`. It trusts the bot: `tests/servers/bot_api` checks what real Telegram refuses.
"""

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from bot.playground.bot_api.chats import ChatMessage, DraftMessage, LocalChat, Member
from bot.playground.bot_api.parameters import Parameters, formatted, keyboard_of
from bot.playground.bot_api.shapes import file_shape, member_shape, message_shape, user_shape
from bot.playground.bot_api.values import (
    BadRequestError,
    FormattedText,
    Media,
    MediaKind,
    MenuCommand,
    StoredFile,
)
from bot.playground.bot_api.world import CommandScope, World

Method = Callable[[World, Parameters], Awaitable[object]]
_MAX_BATCH = 100


async def get_me(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    """Describe the bot."""
    unused = """
        supports_inline_queries supports_guest_queries can_connect_to_business has_main_web_app
        has_topics_enabled allows_users_to_create_topics can_manage_bots
    """
    abilities = {"can_join_groups": True, "can_read_all_group_messages": True}
    return user_shape(world.account.bot) | abilities | dict.fromkeys(unused.split(), False)


async def get_updates(world: World, given: Parameters) -> object:
    """Return pending updates; with a timeout, wait for one. A new poll ends an older one."""
    updates = world.updates
    updates.confirm(given.integer("offset"))
    timeout_s = given.integer("timeout")
    if timeout_s and not updates.due():
        poll = updates.begin_poll()
        await world.account.changes.tell()
        with contextlib.suppress(TimeoutError):
            await world.account.changes.until(
                lambda: updates.due() or not updates.is_polled_by(poll), timeout_s
            )
    limit = given.integer("limit", _MAX_BATCH)
    return [update.shape() for update in updates.hand_out(limit)]


async def get_webhook_info(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    """Say that there is no webhook."""
    pending = world.updates.pending_count
    return {"url": "", "has_custom_certificate": False, "pending_update_count": pending}


async def agree(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    """Return true for a method that changes nothing on the page."""
    return True


async def set_my_commands(world: World, given: Parameters) -> object:
    """Set the menu of a scope and language."""
    scope: Any = given.decoded("scope", "BotCommandScope") or {}
    commands: Any = given.decoded("commands", "BotCommand") or []
    ids = (int(scope.get(name, 0)) for name in ("chat_id", "user_id"))
    key = CommandScope(scope.get("type", "default"), *ids), given.text("language_code")
    menu = tuple(MenuCommand(each["command"], each["description"]) for each in commands)
    world.profile.menus[key] = menu
    await world.account.changes.tell()
    return True


async def get_chat_member(world: World, given: Parameters) -> object:
    """Describe a user's standing in a chat; a known user who is not there has left."""
    user_id = given.integer("user_id")
    chat = world.open_chat(given.text("chat_id"))
    if member := chat.members.get(user_id):
        return member_shape(member)
    if user := world.users.get(user_id):
        return member_shape(Member(user, "left"))
    raise BadRequestError("user not found")


async def send_message(world: World, given: Parameters) -> object:
    """Send a text."""
    text = formatted(given, "text", "entities")
    return await send(world, addressed(world, given), text)


async def send_file(world: World, given: Parameters, *, kind: MediaKind) -> object:
    """Send a file of one kind, uploaded or known by its id."""
    caption = formatted(given, "caption", "caption_entities")
    message = addressed(world, given)
    media = Media(kind, file_of(world, given, kind))
    return await send(world, replace(message, media=media), caption)


async def copy_message(world: World, given: Parameters) -> object:
    """Send the content of a message again, without its origin."""
    source = message_in(world.open_chat(given.text("from_chat_id")), given, "message to copy")
    copied = replace(addressed(world, given), media=source.media)
    sent = await send(world, copied, FormattedText(source.text, source.entities))
    return {"message_id": sent["message_id"]}


async def send_message_draft(world: World, given: Parameters) -> object:
    """Show what the bot is writing."""
    chat = world.open_chat(given.text("chat_id"))
    draft = DraftMessage(
        given.integer("draft_id"),
        formatted(given, "text", "entities"),
        can_stop=given.flag("can_stop"),
        keep_on_stop=given.flag("keep_on_stop"),
    )
    chat.show_draft(draft, given.integer("message_thread_id"))
    await world.account.changes.tell()
    return True


async def send_chat_action(world: World, given: Parameters) -> object:
    """Show that the bot is busy."""
    world.open_chat(given.text("chat_id")).show_typing()
    await world.account.changes.tell()
    return True


async def edit_message_text(world: World, given: Parameters) -> object:
    """Change the text and buttons of one of the bot's messages."""
    chat = world.open_chat(given.text("chat_id"))
    text = formatted(given, "text", "entities")
    message = message_in(chat, given, "message to edit")
    edited = replace(message, text=text.text, entities=text.entities, keyboard=keyboard_of(given))
    return await change(world, message, edited)


async def delete_message(world: World, given: Parameters) -> object:
    """Delete a message."""
    chat = world.open_chat(given.text("chat_id"))
    chat.remove(message_in(chat, given, "message to delete"))
    await world.account.changes.tell()
    return True


async def set_message_reaction(world: World, given: Parameters) -> object:
    """Show one emoji of the bot at a message; an empty list takes it away."""
    chat = world.open_chat(given.text("chat_id"))
    message = message_in(chat, given, "message to react")
    reactions: Any = given.decoded("reaction", "ReactionType") or [{}]
    chat.change(replace(message, reaction=reactions[0].get("emoji", "")))
    await world.account.changes.tell()
    return True


async def answer_callback_query(world: World, given: Parameters) -> object:
    """Answer a pressed button, once."""
    press = world.presses.get(given.text("callback_query_id"))
    if press is None or press.answer is not None:
        raise BadRequestError(
            "query is too old and response timeout expired or query ID is invalid"
        )
    press.answer = given.text("text")
    press.is_alert = given.flag("show_alert")
    await world.account.changes.tell()
    return True


async def get_file(world: World, given: Parameters) -> object:
    """Return the path of a file."""
    file = world.files.get(given.text("file_id"))
    if file is None:
        raise BadRequestError("invalid file_id")
    return file_shape(file)


METHODS: Mapping[str, Method] = {
    "getMe": get_me,
    "getUpdates": get_updates,
    "getWebhookInfo": get_webhook_info,
    "deleteWebhook": agree,
    "setMyCommands": set_my_commands,
    "setMyDescription": agree,
    "setMyShortDescription": agree,
    "getChatMember": get_chat_member,
    "sendMessage": send_message,
    "sendDocument": partial(send_file, kind="document"),
    "sendPhoto": partial(send_file, kind="photo"),
    "sendVoice": partial(send_file, kind="voice"),
    "copyMessage": copy_message,
    "sendMessageDraft": send_message_draft,
    "sendChatAction": send_chat_action,
    "editMessageText": edit_message_text,
    "deleteMessage": delete_message,
    "setMessageReaction": set_message_reaction,
    "answerCallbackQuery": answer_callback_query,
    "getFile": get_file,
}


def addressed(world: World, given: Parameters) -> ChatMessage:
    """Return a message of the bot with everything but its content."""
    chat = world.open_chat(given.text("chat_id"))
    reply: Any = given.decoded("reply_parameters", "reply parameters") or {}
    return ChatMessage(
        chat,
        world.account.bot,
        keyboard=keyboard_of(given),
        topic_id=given.integer("message_thread_id"),
        reply_to=chat.message(int(reply.get("message_id", 0))),
    )


async def send(world: World, message: ChatMessage, text: FormattedText) -> dict[str, Any]:
    """Append a message with a text to its chat and return its JSON."""
    sent = message.chat.add(replace(message, text=text.text, entities=text.entities))
    await world.account.changes.tell()
    return message_shape(sent)


def message_in(chat: LocalChat, given: Parameters, what: str) -> ChatMessage:
    """Return the message that a call names; `what` names it in the refusal."""
    message = chat.message(given.integer("message_id"))
    if message is None:
        raise BadRequestError(f"{what} not found")
    return message


async def change(world: World, message: ChatMessage, edited: ChatMessage) -> object:
    """Replace a message and return its JSON; refuse an edit that changes nothing."""
    if edited == message:
        raise BadRequestError(
            "message is not modified: specified new message content and reply markup are exactly "
            "the same as a current content and reply markup of the message"
        )
    edited = replace(edited, edited_at=world.account.now())
    edited.chat.change(edited)
    await world.account.changes.tell()
    return message_shape(edited)


def file_of(world: World, given: Parameters, name: str) -> StoredFile:
    """Return the file that a call uploads or names by its id."""
    if upload := given.upload(name):
        return world.store(upload)
    file = world.files.get(given.text(name))
    if file is None:
        raise BadRequestError("wrong file identifier/HTTP URL specified")
    return file
