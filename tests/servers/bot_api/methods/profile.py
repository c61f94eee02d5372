"""The profile of the bot: its name, its command menus, its descriptions."""

import re

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.parameters import Parameters, fields_of
from tests.servers.bot_api.shapes import user_shape
from tests.servers.bot_api.values import BotCommand
from tests.servers.bot_api.world import World

_MAX_COMMANDS = 100
_MAX_COMMAND_LENGTH = 32
_MAX_COMMAND_DESCRIPTION_LENGTH = 256
_MAX_DESCRIPTION_LENGTH = 512
_COMMAND = re.compile(r"[a-z0-9_]+")
_LANGUAGE = re.compile(r"[a-z]{2}|")
_SCOPES = ("default", "all_private_chats", "all_group_chats")  # that the bot uses


async def get_me(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    unused = """
        supports_inline_queries supports_guest_queries can_connect_to_business has_main_web_app
        can_manage_bots has_topics_enabled allows_users_to_create_topics
    """
    return (
        user_shape(world.account.bot)
        | {"can_join_groups": True, "can_read_all_group_messages": world.reads_all}
        | dict.fromkeys(unused.split(), False)
    )


async def set_my_commands(world: World, given: Parameters) -> object:
    values = given.array("commands", "BotCommand") or []
    fields = [fields_of(value, "expected an Object") for value in values]
    key = _scope(world, given), _language(given)
    commands = tuple(
        _command(each.required_text("command"), each.required_text("description"))
        for each in fields
    )
    if len(commands) > _MAX_COMMANDS:
        raise BadRequestError("BOT_COMMANDS_TOO_MUCH")
    world.menus[key] = commands
    await world.account.changes.tell()
    return True


async def set_my_description(world: World, given: Parameters) -> object:  # noqa: ARG001 - a Method
    if len(given.text("description")) > _MAX_DESCRIPTION_LENGTH:
        raise BadRequestError("DESCRIPTION_TOO_LONG")
    _language(given)
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


def _scope(world: World, given: Parameters) -> str:
    """Return a scope, for that of one chat its id."""
    fields = given.fields("scope", "BotCommandScope")
    kind = fields.required_text("type") if fields else "default"
    if fields and kind == "chat":
        return str(world.chat(fields.required_text("chat_id")).id)
    if kind not in _SCOPES:
        raise BadRequestError("unsupported type specified")
    return kind
