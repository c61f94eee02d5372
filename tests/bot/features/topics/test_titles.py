"""A topic gets its title once, through errors and crashes, and never instead of a person's name."""

from contextlib import suppress
from dataclasses import replace

import pytest

from bot.features.topics.feature import TopicTitles, title_of
from bot.telegram.errors import OutcomeUnknown, Refused, TelegramError
from bot.telegram.updates import TopicNamed
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.entries import Synopsis
from memory.scopes.sources import Trust
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.conftest import Doomed
from tests.memory.clients import DyingClient
from tests.quiet_chat import QuietChat

TOPIC = Scope.of_chat(7, 5)
OPENED = TopicNamed(1, 7, 5, is_by_person=False)
GENOA = "Wanted to plan a trip to Genoa."
TITLE = "Wanted to plan a trip to Genoa"


def synopsis(request: str) -> Synopsis:
    return Synopsis(0, request, "", "Found a train.", "", "", "", "", 1, 2, 1, 2, TOPIC.tag)


@pytest.fixture
async def memory(memory: Memory) -> Memory:
    await TopicTitles(memory, QuietChat()).arrived(OPENED)
    return memory


async def summed_up(memory: Memory, request: str) -> None:
    await memory.scopes.write(await memory.scopes.read(TOPIC), Write([synopsis(request)]))


async def test_a_topic_is_named_once_when_its_first_session_has_a_synopsis(memory: Memory) -> None:
    chat = QuietChat()
    titles = TopicTitles(memory, chat)
    await titles.give(TOPIC)
    assert chat.names == []
    for request in (GENOA, "Wanted to bake bread."):
        await summed_up(memory, request)
        await titles.give(TOPIC)
        # Telegram may deliver the notice of the new topic again.
        await titles.arrived(OPENED)
    assert chat.names == [(7, 5, TITLE)]


@pytest.mark.parametrize(
    ("error", "times"), [(OutcomeUnknown("timeout"), 2), (Refused("other"), 1)]
)
async def test_a_call_that_may_have_failed_is_made_again_with_the_same_name(
    memory: Memory, error: TelegramError, times: int
) -> None:
    await summed_up(memory, GENOA)
    chat = QuietChat()
    chat.fails["name_topic"] = error
    for _ in range(3):
        await TopicTitles(memory, chat).give(TOPIC)
    assert chat.names == [(7, 5, TITLE)] * times


async def test_wherever_a_process_dies_the_next_one_gives_the_same_name(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    """Only the name in doubt is given twice."""
    await summed_up(memory, GENOA)
    doubled = 0
    for _ in dying.deaths():
        await memory.client.call("DEL", memory.keys.topic_name(TOPIC))
        chat = QuietChat()
        await TopicTitles(memory, chat).arrived(OPENED)
        with suppress(StoreUnavailable):
            await TopicTitles(doomed(), chat).give(TOPIC)
        assert await TopicTitles(memory, chat).give(TOPIC)
        assert set(chat.names) == {(7, 5, TITLE)}
        doubled += len(chat.names) - 1
        assert await memory.client.call("GET", memory.keys.topic_name(TOPIC)) == b"bot"
    assert doubled


async def test_a_name_given_by_a_person_is_never_changed(memory: Memory) -> None:
    await summed_up(memory, GENOA)
    titles = TopicTitles(memory, chat := QuietChat())
    await titles.arrived(replace(OPENED, is_by_person=True))
    await titles.arrived(OPENED)
    await titles.give(TOPIC)
    assert chat.names == []


@pytest.mark.parametrize("other", [Scope.of_chat(7), Scope.of_chat(-7, 5)])
async def test_only_topics_of_private_chats_are_named(memory: Memory, other: Scope) -> None:
    titles = TopicTitles(memory, chat := QuietChat())
    await titles.arrived(replace(OPENED, chat_id=other.chat_id, topic_id=other.topic_id))
    await titles.give(other)
    assert chat.names == []


def test_a_title_is_short_visible_and_whole_words() -> None:
    title = title_of(synopsis("\u202eПоездка в Геную\n" + "и ещё куда-нибудь " * 20))
    assert title.startswith("Поездка в Геную и ещё")
    assert title.endswith("…")
    assert len(title.encode()) <= 128
    assert title_of(synopsis("")) == "Found a train"
    assert title_of(replace(synopsis("Visit example.com"), trust=Trust.UNTRUSTED)) == ""
