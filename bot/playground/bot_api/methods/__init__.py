"""The methods of the Bot API that the bot uses, one small function each.

A method reads its parameters, changes the world, and returns its result as it stands in JSON, or
raises `ApiError`.
"""

from collections.abc import Awaitable, Callable

from bot.playground.bot_api.errors import NotFoundError
from bot.playground.bot_api.methods import chats, messages, profile, updates
from bot.playground.bot_api.parameters import Parameters
from bot.playground.bot_api.world import World

Method = Callable[[World, Parameters], Awaitable[object]]

_METHODS: dict[str, Method] = {
    "getMe": profile.get_me,
    "setMyCommands": profile.set_my_commands,
    "getMyCommands": profile.get_my_commands,
    "deleteMyCommands": profile.delete_my_commands,
    "setMyDescription": profile.set_my_description,
    "setMyShortDescription": profile.set_my_short_description,
    "getUpdates": updates.get_updates,
    "setWebhook": updates.set_webhook,
    "deleteWebhook": updates.delete_webhook,
    "getWebhookInfo": updates.get_webhook_info,
    "sendMessage": messages.send_message,
    "sendDocument": messages.send_document,
    "sendMessageDraft": messages.send_message_draft,
    "sendChatAction": messages.send_chat_action,
    "editMessageText": messages.edit_message_text,
    "editMessageReplyMarkup": messages.edit_message_reply_markup,
    "deleteMessage": messages.delete_message,
    "answerCallbackQuery": messages.answer_callback_query,
    "getFile": messages.get_file,
    "getChat": chats.get_chat,
    "getChatMember": chats.get_chat_member,
    "getChatAdministrators": chats.get_chat_administrators,
}
_BY_LOWER_NAME = {name.lower(): (name, method) for name, method in _METHODS.items()}


def method_named(name: str) -> tuple[str, Method]:
    """Return a method and its name as documented; case does not matter, as in Telegram."""
    return _BY_LOWER_NAME.get(name.lower(), (name, _unknown))


async def _unknown(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    raise NotFoundError("method not found")
