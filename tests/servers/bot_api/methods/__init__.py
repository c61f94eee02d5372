"""The methods of the Bot API that the bot uses, with Telegram's refusals: a small function each.

A method reads its parameters, changes the world, and returns its result as JSON, or raises
`ApiError`.
"""

from collections.abc import Awaitable, Callable, Mapping

from tests.servers.bot_api.methods import chats, messages, profile, updates
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.world import World

Method = Callable[[World, Parameters], Awaitable[object]]

METHODS: Mapping[str, Method] = {
    "getMe": profile.get_me,
    "setMyCommands": profile.set_my_commands,
    "setMyDescription": profile.set_my_description,
    "getUpdates": updates.get_updates,
    "setWebhook": updates.set_webhook,
    "deleteWebhook": updates.delete_webhook,
    "getWebhookInfo": updates.get_webhook_info,
    "sendMessage": messages.send_message,
    "sendDocument": messages.send_document,
    "sendPhoto": messages.send_photo,
    "sendVoice": messages.send_voice,
    "sendMessageDraft": messages.send_message_draft,
    "sendChatAction": messages.send_chat_action,
    "sendRichMessage": messages.send_rich_message,
    "copyMessage": messages.copy_message,
    "editMessageText": messages.edit_message_text,
    "deleteMessage": messages.delete_message,
    "setMessageReaction": chats.set_message_reaction,
    "answerCallbackQuery": messages.answer_callback_query,
    "getFile": messages.get_file,
    "getChatMember": chats.get_chat_member,
    "leaveChat": chats.leave_chat,
    "editForumTopic": chats.edit_forum_topic,
}
