"""The profile of the bot: its name, its command menus, its descriptions."""

import re

from tests.servers.bot_api.errors import BadRequestError, while_reading
from tests.servers.bot_api.parameters import Parameters, fields_of
from tests.servers.bot_api.shapes import user_shape
from tests.servers.bot_api.values import BotCommand
from tests.servers.bot_api.world import CommandScope, World

_MAX_COMMANDS = 100
_MAX_COMMAND_LENGTH = 32
_MAX_COMMAND_DESCRIPTION_LENGTH = 256
_MAX_DESCRIPTION_LENGTH = 512
_COMMAND = re.compile(r"[a-z0-9_]+")
_LANGUAGE = re.compile(r"[a-z]{2}|")
_WIDE_SCOPES = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
_CHAT_SCOPES = ("chat", "chat_administrators", "chat_member")


async def get_me(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    unused = """
        supports_inline_queries supports_guest_queries can_connect_to_business has_main_web_app
        can_manage_bots
    """
    topics = ("has_topics_enabled", "allows_users_to_create_topics")
    return (
        user_shape(world.account.bot)
        | {"can_join_groups": True, "can_read_all_group_messages": world.reads_all}
        | dict.fromkeys(topics, world.private_topics)
        | dict.fromkeys(unused.split(), False)
    )


async def set_my_commands(world: World, given: Parameters) -> object:
    values = given.array("commands", "BotCommand") or []
    with while_reading("BotCommand"):
        fields = [fields_of(value, "expected an Object") for value in values]
        raw = [
            (each.required_text("command"), each.required_text("description")) for each in fields
        ]
    key = _scope(world, given), _language(given)
    commands = tuple(_command(name, description) for name, description in raw)
    if len(commands) > _MAX_COMMANDS:
        raise BadRequestError("BOT_COMMANDS_TOO_MUCH")
    world.menus[key] = commands
    await world.account.changes.tell()
    return True


async def set_my_description(world: World, given: Parameters) -> object:
    description = given.text("description")
    if len(description) > _MAX_DESCRIPTION_LENGTH:
        raise BadRequestError("DESCRIPTION_TOO_LONG")
    world.descriptions[_language(given)] = description
    return True


def _command(name: str, description: str) -> BotCommand:
    name, description = name.strip().removeprefix("/"), description.strip()
    if not name:
        raise BadRequestError("command must be non-empty")
    if len(name) > _MAX_COMMAND_LENGTH:
        raise BadRequestError(f"command length must not exceed {_MAX_COMMAND_LENGTH}")
    if not description:
        raise BadRequestError("command description must be non-empty")
    if len(description) > _MAX_COMMAND_DESCRIPTION_LENGTH:
        raise BadRequestError(
            f"command description length must not exceed {_MAX_COMMAND_DESCRIPTION_LENGTH}"
        )
    if not _COMMAND.fullmatch(name):
        raise BadRequestError("BOT_COMMAND_INVALID")
    return BotCommand(name, description)


def _language(given: Parameters) -> str:
    language = given.text("language_code")
    if not _LANGUAGE.fullmatch(language):
        raise BadRequestError("invalid language code specified")
    return language


def _scope(world: World, given: Parameters) -> CommandScope:
    fields = given.fields("scope", "BotCommandScope")
    if fields is None:
        return CommandScope()
    with while_reading("BotCommandScope"):
        kind = fields.required_text("type")
        if kind in _WIDE_SCOPES:
            return CommandScope(kind)
        if kind not in _CHAT_SCOPES:
            raise BadRequestError("unsupported type specified")
        chat_id = fields.required_text("chat_id")
        user_id = fields.required_integer("user_id") if kind == "chat_member" else 0
    return _chat_scope(world, CommandScope(kind, user_id=user_id), chat_id)


def _chat_scope(world: World, scope: CommandScope, chat_id: str) -> CommandScope:
    chat = world.chat(chat_id)
    if chat.kind == "channel":
        raise BadRequestError("can't change commands in channel chats")
    if chat.kind == "private" and scope.type != "chat":
        raise BadRequestError("can't use specified scope in private chats")
    return CommandScope(scope.type, chat.id, scope.user_id)
