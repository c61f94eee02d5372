"""The methods of the Bot API with all of Telegram's refusals, one small function each.

Each checks what real Telegram checks and then calls the playground's method, if there is one.
"""

from collections.abc import Awaitable, Callable, Mapping

from bot.playground.bot_api import parameters, world
from bot.playground.bot_api.methods import Method
from tests.servers.bot_api.methods import (
    chats,
    files,
    messages,
    profile,
    reactions,
    rich,
    topics,
    updates,
)
from tests.servers.bot_api.parameters import Parameters, strict
from tests.servers.bot_api.world import World

StrictMethod = Callable[[World, Parameters], Awaitable[object]]

_STRICT: Mapping[str, StrictMethod] = {
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
    "sendDocument": files.send_document,
    "sendPhoto": files.send_photo,
    "sendVoice": files.send_voice,
    "sendMessageDraft": messages.send_message_draft,
    "sendChatAction": messages.send_chat_action,
    "sendRichMessage": rich.send_rich_message,
    "copyMessage": messages.copy_message,
    "editMessageText": rich.edit_message_text,
    "editMessageReplyMarkup": messages.edit_message_reply_markup,
    "deleteMessage": messages.delete_message,
    "deleteMessages": messages.delete_messages,
    "setMessageReaction": reactions.set_message_reaction,
    "answerCallbackQuery": messages.answer_callback_query,
    "getFile": messages.get_file,
    "getChat": chats.get_chat,
    "getChatMember": chats.get_chat_member,
    "getChatAdministrators": chats.get_chat_administrators,
    "leaveChat": chats.leave_chat,
    "createForumTopic": topics.create_forum_topic,
    "editForumTopic": topics.edit_forum_topic,
}


def _method(checked: StrictMethod) -> Method:
    async def run(here: world.World, given: parameters.Parameters) -> object:
        if not isinstance(here, World):
            raise TypeError("a strict method needs the tests' world")
        return await checked(here, strict(given))

    return run


METHODS: Mapping[str, Method] = {name: _method(checked) for name, checked in _STRICT.items()}
