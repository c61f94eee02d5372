"""The profile of the bot: its name, its command menus, its descriptions."""

import re

from bot.playground.bot_api import methods
from bot.playground.bot_api.values import BadRequestError
from bot.playground.bot_api.values import MenuCommand as BotCommand
from bot.playground.bot_api.world import CommandScope
from tests.servers.bot_api.errors import while_reading
from tests.servers.bot_api.parameters import Parameters, fields_of
from tests.servers.bot_api.shapes import commands_shape
from tests.servers.bot_api.world import World

_MAX_COMMANDS = 100
_MAX_COMMAND_LENGTH = 32
_MAX_COMMAND_DESCRIPTION_LENGTH = 256
_MAX_DESCRIPTION_LENGTH = 512
_MAX_SHORT_DESCRIPTION_LENGTH = 120
_COMMAND = re.compile(r"[a-z0-9_]+")
_LANGUAGE = re.compile(r"[a-z]{2}|")
_WIDE_SCOPES = ("default", "all_private_chats", "all_group_chats", "all_chat_administrators")
_CHAT_SCOPES = ("chat", "chat_administrators", "chat_member")


async def get_me(world: World, given: Parameters) -> object:
    """Describe the bot and what it may do."""
    shape = await methods.get_me(world, given)
    assert isinstance(shape, dict)
    topics = ("has_topics_enabled", "allows_users_to_create_topics")
    return (
        shape
        | {"can_read_all_group_messages": world.reads_all}
        | dict.fromkeys(topics, world.private_topics)
    )


async def set_my_commands(world: World, given: Parameters) -> object:
    """Set the menu of a scope and language."""
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
    world.profile.menus[key] = commands
    await world.account.changes.tell()
    return True


async def get_my_commands(world: World, given: Parameters) -> object:
    """Return exactly the menu that was set for a scope and language."""
    key = _scope(world, given), _language(given)
    return commands_shape(world.profile.menus.get(key, ()))


async def delete_my_commands(world: World, given: Parameters) -> object:
    """Forget the menu of a scope and language."""
    world.profile.menus.pop((_scope(world, given), _language(given)), None)
    await world.account.changes.tell()
    return True


async def set_my_description(world: World, given: Parameters) -> object:
    """Set what an empty chat with the bot shows."""
    description = given.text("description")
    if len(description) > _MAX_DESCRIPTION_LENGTH:
        raise BadRequestError("DESCRIPTION_TOO_LONG")
    world.profile.descriptions[_language(given)] = description
    return True


async def set_my_short_description(world: World, given: Parameters) -> object:
    """Set what the bot's profile shows."""
    description = given.text("short_description")
    if len(description) > _MAX_SHORT_DESCRIPTION_LENGTH:
        raise BadRequestError("ABOUT_TOO_LONG")
    world.profile.short_descriptions[_language(given)] = description
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
