import pytest
from telegram import (
    Bot,
    BotCommand,
    BotCommandScope,
    BotCommandScopeAllChatAdministrators,
    BotCommandScopeAllGroupChats,
    BotCommandScopeAllPrivateChats,
    BotCommandScopeChat,
    BotCommandScopeChatAdministrators,
    BotCommandScopeChatMember,
    BotCommandScopeDefault,
)
from telegram.error import BadRequest

from tests.servers.bot_api import Chat, Person
from tests.servers.bot_api_client import Scene, raw_client, refusal, scene


async def set_menu(bot: Bot, name: str, scope: BotCommandScope, language: str = "") -> None:
    """Set a menu with one command that names it."""
    await bot.set_my_commands([BotCommand(name, "what it does")], scope, language)


def menu(at: Scene, person: Person, chat: Chat) -> list[str]:
    return [command.command for command in at.server.menu(person, chat)]


async def test_commands_are_kept_by_scope_and_language() -> None:
    async with scene() as at:
        await at.bot.set_my_commands([("help", "Help me"), ("/new", " Begin anew ")])
        await set_menu(at.bot, "hilfe", BotCommandScopeDefault(), "de")

        kept = await at.bot.get_my_commands()
        assert kept == (BotCommand("help", "Help me"), BotCommand("new", "Begin anew"))
        german = await at.bot.get_my_commands(language_code="de")
        assert [command.command for command in german] == ["hilfe"]
        assert await at.bot.get_my_commands(BotCommandScopeAllPrivateChats()) == ()

        await at.bot.delete_my_commands()
        assert await at.bot.get_my_commands() == ()


async def test_a_person_sees_the_menu_of_the_narrowest_scope_and_the_own_language() -> None:
    async with scene() as at:
        bert = at.server.user(2, "Bert", language_code="en")
        berts = at.server.private_chat(bert)
        assert menu(at, bert, berts) == []

        await set_menu(at.bot, "default", BotCommandScopeDefault())
        await set_menu(at.bot, "private", BotCommandScopeAllPrivateChats())
        await set_menu(at.bot, "privat", BotCommandScopeAllPrivateChats(), "de")
        await set_menu(at.bot, "admin", BotCommandScopeChat(berts.id))

        assert menu(at, at.anna, at.chat) == ["privat"]
        assert menu(at, bert, berts) == ["admin"]
        assert menu(at, at.anna, at.server.group("Friends", [at.anna])) == ["default"]


async def test_in_a_group_admins_see_the_menu_for_admins() -> None:
    async with scene() as at:
        bert = at.server.user(2, "Bert")
        group = at.server.group("Friends", [bert], [at.anna])
        await set_menu(at.bot, "groups", BotCommandScopeAllGroupChats())
        await set_menu(at.bot, "admins", BotCommandScopeAllChatAdministrators())
        assert (menu(at, at.anna, group), menu(at, bert, group)) == (["admins"], ["groups"])

        await set_menu(at.bot, "here", BotCommandScopeChat(group.id))
        await set_menu(at.bot, "admins_here", BotCommandScopeChatAdministrators(group.id))
        assert (menu(at, at.anna, group), menu(at, bert, group)) == (["admins_here"], ["here"])

        await set_menu(at.bot, "bert", BotCommandScopeChatMember(group.id, bert.id))
        assert menu(at, bert, group) == ["bert"]


@pytest.mark.parametrize(
    ("name", "description", "expected"),
    [
        (" ", "what", "Command must be non-empty"),
        ("a" * 33, "what", "Command length must not exceed 32"),
        ("help", " ", "Command description must be non-empty"),
        ("help", "a" * 257, "Command description length must not exceed 256"),
        ("Help", "what", "Bot_command_invalid"),
        ("hilfe-mir", "what", "Bot_command_invalid"),
    ],
)
async def test_a_command_that_telegram_would_not_show_is_refused(
    name: str, description: str, expected: str
) -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.set_my_commands([(name, description)])

    assert refusal(caught) == expected


async def test_a_menu_has_at_most_a_hundred_commands() -> None:
    async with scene() as at:
        commands = [(f"c{number}", "what") for number in range(101)]
        await at.bot.set_my_commands(commands[:100])
        with pytest.raises(BadRequest):
            await at.bot.set_my_commands(commands)


async def test_a_language_has_two_letters() -> None:
    async with scene() as at:
        with pytest.raises(BadRequest) as caught:
            await at.bot.set_my_commands([("help", "what")], language_code="deu")

    assert refusal(caught) == "Invalid language code specified"


async def test_a_scope_for_a_chat_must_fit_it() -> None:
    async with scene() as at:
        channel = at.server.channel("News", [at.anna])
        for scope, expected in (
            (BotCommandScopeChat(404), "Chat not found"),
            (BotCommandScopeChat(channel.id), "Can't change commands in channel chats"),
            (
                BotCommandScopeChatAdministrators(at.chat.id),
                "Can't use specified scope in private chats",
            ),
        ):
            with pytest.raises(BadRequest) as caught:
                await set_menu(at.bot, "help", scope)
            assert refusal(caught) == expected


@pytest.mark.parametrize("scope", ["{", "[]", "{}", '{"type": "moon"}', '{"type": "chat"}'])
async def test_an_unknown_scope_is_refused(scope: str) -> None:
    async with scene() as at, raw_client(at.server) as client:
        answer = await client.post("getMyCommands", data={"scope": scope})

    assert answer.status_code == 400


async def test_descriptions_have_a_maximum_length() -> None:
    async with scene() as at:
        assert await at.bot.set_my_description("a" * 512, "de")
        assert await at.bot.set_my_short_description("a" * 120)
        with pytest.raises(BadRequest):
            await at.bot.set_my_description("a" * 513)
        with pytest.raises(BadRequest):
            await at.bot.set_my_short_description("a" * 121)
