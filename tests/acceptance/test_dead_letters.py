"""A turn that keeps failing becomes a dead letter: its chat goes on, operators retry or drop it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memory.queue.mailbox import Entry, Mailbox
from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from memory.store.scripts import Scripts
from memory.store.store import Store
from tests.acceptance.buttons import ask_first, erase, press, shown
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import Reply
from tests.stored import everything_stored

ADMIN_ID = 1009
WORDS = "a secret that must not be shown"
GARBAGE = f'["{WORDS}", not a message'.encode()


@pytest.fixture
async def admin_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Yield a running bot that has an operator."""
    async with open_rig(valkey, tmp_path, "webhook") as opened:
        await opened.start(admin_user_ids=ADMIN_ID, lease_s=1)
        yield opened


def the_admin(rig: Rig) -> tuple[Person, Chat]:
    return rig.person(ADMIN_ID, "Ada")


async def put_garbage(rig: Rig, chat: Chat, person: Person, update_id: int) -> None:
    """Put an entry into a chat's mailbox that no version of the bot can read."""
    store = await RedisClient.open(rig.environment["REDIS_URL"])
    rooms = Store(store, Keys(rig.telegram.bot.id), Scripts(store), asyncio.Event(), ttl_s=3600)
    entry = Entry(update_id, person.id, is_command=False, body=GARBAGE)
    await Mailbox(rooms).put(Scope.of_chat(chat.id), entry)
    await store.close()


async def set_aside(rig: Rig, chat: Chat, person: Person, update_id: int) -> Message:
    """Make a dead letter of garbage; return the apology."""
    await rig.ask(person, chat, "/help")
    replies = len(chat.replies)
    await put_garbage(rig, chat, person, update_id)
    await rig.telegram.wait_for(lambda: len(chat.replies) > replies)
    forgive(rig)
    return chat.replies[-1]


def forgive(rig: Rig) -> None:
    """Take the expected failures, which have tracebacks, out of the log."""
    assert WORDS not in "\n".join(rig.bot.raw)
    rig.bot.raw[:] = [line for line in rig.bot.raw if "JSONDecodeError" not in line]


def labels(message: Message) -> list[list[str]]:
    return [[button.text for button in row] for row in message.keyboard]


async def test_a_message_that_cannot_be_read_does_not_block_its_chat(admin_rig: Rig) -> None:
    rig = admin_rig
    (ada, adas), (anna, annas) = the_admin(rig), rig.anna()
    assert (await rig.ask(ada, adas, "/deadletters")).text == sentence("dead_letters.none")
    apology = await set_aside(rig, annas, anna, 7)
    assert apology.text == sentence("error.apology", reference=7)
    await rig.ask(anna, annas, "Hello")
    assert [m.content for m in rig.requests[-1].messages[1:]] == ["Hello"]

    shows = await rig.ask(ada, adas, "/deadletters")
    assert labels(shows) == [["Retry 1", "Drop 1"]]
    for told in (f"chat {annas.id}", "JSONDecodeError", "reference 7", "failed: 1"):
        assert told in shows.text
    assert WORDS not in shows.text

    await press(rig, ada, shows, "Retry 1")
    await rig.telegram.wait_for(lambda: len(annas.replies) == 4)
    forgive(rig)
    assert annas.replies[-1].text == apology.text
    shows = await rig.ask(ada, adas, "/deadletters")
    assert labels(shows) == [["Retry 1", "Drop 1"]]
    await press(rig, ada, shows, "Drop 1")
    await shown(rig, shows, sentence("dead_letters.none"))
    assert WORDS.encode() not in await everything_stored(rig.environment["REDIS_URL"])
    assert len(rig.requests) == 1


async def test_only_operators_see_and_change_dead_letters(admin_rig: Rig) -> None:
    rig = admin_rig
    (ada, adas), (anna, annas) = the_admin(rig), rig.anna()
    group = rig.telegram.group("Club", [anna], admins=[ada])
    await set_aside(rig, annas, anna, 7)
    assert (await rig.ask(anna, annas, "/deadletters")).text == sentence("admin.not_admin")
    assert (await rig.ask(ada, group, "/deadletters")).text == sentence("admin.only_private")
    shows = await rig.ask(ada, adas, "/deadletters")
    assert len(shows.keyboard) == 1


async def test_a_clear_erases_dead_letters(admin_rig: Rig) -> None:
    rig = admin_rig
    (ada, adas), (anna, annas) = the_admin(rig), rig.anna()
    await set_aside(rig, annas, anna, 7)
    question = await ask_first(rig, anna, annas, "/clear")
    await erase(rig, anna, question, "clear.done", messages=0, vectors=0, waiting=1)
    assert (await rig.ask(ada, adas, "/deadletters")).text == sentence("dead_letters.none")
    assert WORDS.encode() not in await everything_stored(rig.environment["REDIS_URL"])


@pytest.mark.parametrize("by_operator", [True, False])
async def test_a_message_that_crashes_the_process_becomes_a_dead_letter_and_can_be_retried(
    admin_rig: Rig, *, by_operator: bool
) -> None:
    rig = admin_rig
    (ada, adas), (anna, annas) = the_admin(rig), rig.anna()
    deadly = Reply("Never said.", gate=asyncio.Event())
    rig.script.on("Deadly", deadly, deadly, "Here is your answer.")
    said = await anna.say(annas, "Deadly words")
    for times in (1, 2):
        await rig.wait_until_asked("Deadly", times=times)
        await rig.restart()
    turn = str(rig.telegram.updates.history[-1].id)
    apology = await annas.wait_for_reply(after=said, timeout_s=20)
    assert apology.text == sentence("error.apology", reference=turn)
    await rig.ask(anna, annas, "Hello")
    assert [m.content for m in rig.requests[-1].messages[1:]] == ["Hello"]

    shows = await rig.ask(ada, adas, "/deadletters")
    assert f"reference {turn}" in shows.text
    assert "Interrupted" in shows.text
    if by_operator:
        await press(rig, ada, shows, "Retry 1")
        await shown(rig, shows, sentence("dead_letters.none"))
    else:
        await press(rig, anna, apology, sentence("buttons.again"))
        await shown(rig, apology, sentence("retry.begun"))
    await rig.telegram.wait_for(lambda: annas.replies[-1].text == "Here is your answer.")
    await rig.ask(anna, annas, "And now?")
    contents = [m.content for m in rig.requests[-1].messages[1:]]
    assert contents == [
        *("Hello", "All right.", "Deadly words", "Here is your answer.", "And now?")
    ]
    assert len(rig.requests) == 5
