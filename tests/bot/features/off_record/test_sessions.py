"""A session off the record keeps its words apart, until it is ended, over or cleared."""

import re
from time import time
from typing import Any

import pytest

from bot.features.off_record.feature import OffRecordSessions, duration_s
from bot.language.catalogue import Catalogue
from memory.memory import Memory
from memory.queue.mailbox import Entry, Mailbox, Outcome
from memory.queue.open_turn import Closing, OffRecord, is_off_record
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from tests.memory.turns import ANN, HERE, exchange_of, put, take, texts

BACK = Entry(-1, ANN, is_alone=True, body=b"back")


def sessions(memory: Memory) -> OffRecordSessions:
    return OffRecordSessions(memory.store, memory.mailbox)


async def begin(memory: Memory, seconds: float) -> None:
    now = time()
    await sessions(memory).begin(HERE, now, now + seconds, BACK)


async def talk(memory: Memory, update_id: int) -> OffRecord:
    """Commit an exchange off the record; return the session as the next turn would load it."""
    await put(memory, update_id)
    turn = await take(memory)
    closing = Closing(uses_memory=False)
    await memory.turns.commit(
        turn, exchange_of(turn), memory.histories.cursor(HERE), closing=closing
    )
    await put(memory, update_id + 100)
    turn = await take(memory)
    assert turn.off_record
    await memory.turns.commit(turn, [], memory.histories.cursor(HERE))
    return turn.off_record


async def words(memory: Memory) -> int:
    return int(await memory.client.call("EXISTS", memory.keys.scope(HERE).off_record))


async def waiting(memory: Memory) -> list[bytes]:
    members = await memory.client.call("ZRANGE", memory.keys.scope(HERE).mailbox, 0, -1)
    return [Entry.of_member(member).body for member in members]


async def test_the_words_of_a_session_are_its_history_alone_until_it_ends(memory: Memory) -> None:
    assert await sessions(memory).end(HERE, 1, is_due=False) is None
    await begin(memory, 60)
    session = await talk(memory, 10)
    assert session.covers(time())
    assert not session.covers(session.until)
    assert [message.text for message in session.said] == ["text 10", "yes"]
    history = session.history(memory.histories, HERE)
    found = await history.search("text 10", 2)
    assert [message.text for message in found[0].messages] == ["text 10", "yes"]
    assert await texts(memory) == []

    session = await talk(memory, 11)
    assert [message.seq for message in session.said] == [1, 2, 3, 4]
    assert await sessions(memory).end(HERE, 30, is_due=True) is None
    for _ in range(2):  # the answer of the first call was lost
        assert await sessions(memory).end(HERE, 30, is_due=False) == 4
    assert await sessions(memory).end(HERE, 31, is_due=False) is None
    assert await words(memory) == 0
    assert not await is_off_record(memory.store, HERE)


async def test_a_fresh_start_empties_the_session_and_touches_nothing_else(memory: Memory) -> None:
    await begin(memory, 60)
    assert (await talk(memory, 10)).said
    await put(memory, 20)
    fresh = Closing(ends_session=True, uses_memory=False)
    await memory.turns.commit(await take(memory), [], memory.histories.cursor(HERE), closing=fresh)
    assert await words(memory) == 0
    stored = await memory.client.call("HGET", memory.keys.scope(HERE).meta, "session")
    assert (stored, await memory.client.call("ZCARD", memory.keys.learning)) == (None, 0)
    session = await talk(memory, 11)
    assert [message.text for message in session.said] == ["text 11", "yes"]
    assert await sessions(memory).end(HERE, 30, is_due=False) == 4


async def test_a_session_that_is_over_takes_no_words_and_gets_one_command(memory: Memory) -> None:
    await begin(memory, 60)
    await talk(memory, 10)
    await sessions(memory).end_due()
    assert await waiting(memory) == []
    await begin(memory, -1)
    assert await words(memory) == 0
    session = await talk(memory, 11)
    assert session.said == ()
    for _ in range(2):
        await sessions(memory).end_due()
        assert await waiting(memory) == [b"back"]
    assert await memory.client.call("ZCARD", memory.keys.off_record) == 0
    assert await sessions(memory).end(HERE, -1, is_due=True) == 2

    # The command names its person. A process that died before it dropped its note repeats nothing.
    stored = await memory.client.call("HGET", memory.keys.scope(HERE).meta, "off_record")
    assert b"back" not in stored
    await memory.client.call("ZADD", memory.keys.off_record, 1, HERE.tag)
    await sessions(memory).end_due()
    assert await waiting(memory) == [b"back"]
    assert await memory.client.call("ZCARD", memory.keys.off_record) == 0


async def test_a_clear_erases_the_words_of_a_session_and_of_its_letters(memory: Memory) -> None:
    await begin(memory, 60)
    await talk(memory, 10)
    await (await ChatHistory.read(memory.histories, HERE)).clear()
    assert await words(memory) == 0
    assert await is_off_record(memory.store, HERE)
    stored = await memory.client.call("HGET", memory.keys.scope(HERE).meta, "off_record")
    assert b"back" not in stored  # the command names its person
    assert await sessions(memory).end(HERE, 30, is_due=False) == 0
    await begin(memory, 60)
    await talk(memory, 13)
    await begin(memory, -1)  # it is over, and no command ends it
    await begin(memory, 60)
    assert await sessions(memory).end(HERE, 31, is_due=False) == 0
    await put(memory, 12)
    await memory.dead_letters.set_aside(await take(memory), "Error", b"[]", is_kept=False)
    assert await memory.dead_letters.listed() == []
    assert await memory.client.call("EXISTS", memory.keys.scope(HERE).dead_letters) == 0


async def test_a_session_that_begins_while_the_last_one_ends_gets_its_end(memory: Memory) -> None:
    class Begins(Mailbox):
        async def put(self, conversation: Scope, entry: Entry, *others: Any) -> Outcome:
            await begin(memory, 0.3)
            return await super().put(conversation, entry, *others)

    await begin(memory, -1)
    await OffRecordSessions(memory.store, Begins(memory.store)).end_due()
    assert await memory.client.call("ZSCORE", memory.keys.off_record, HERE.tag) is not None


@pytest.mark.parametrize("language", Catalogue().languages)
def test_each_time_that_the_refusal_shows_is_understood(language: str) -> None:
    shown = re.findall(
        r"/off (\d[\w ]+?)(?=[,.،\u200e]| (?:or|oder|ou|o|или|або|یا|veya) )",
        Catalogue().text(language, "off.usage"),
    )
    assert [duration_s(each) for each in shown] == [1_800, 7_200, 86_400]


@pytest.mark.parametrize(
    ("minutes", "said"),
    [
        (5, "5m|5 minutes|for 5 min|5 Minuten lang|5 минут|5 хвилин|۵ دقیقه|5 menit|5 dakika"),
        (30, "half an hour|eine halbe Stunde|une demi-heure|полчаса|نیم ساعت|yarım saat"),
        (60, "1h|for an hour|eine Stunde|une heure|un'ora|uma hora|час|на годину|sejam"),
        (1_440, "1d|a day|einen Tag|un jour|un día|un giorno|um dia|день|یک روز|sehari|bir gün"),
        (0, "5|5 months|5 Monate|tomorrow|an|for|5 dozen|2 years|год"),
        # Whoever writes a word that only begins like a time would be recorded again after a minute.
        (0, "1 minggu|хватит|часто|дно|minus|mine|m|h|for d"),
    ],
)
def test_a_time_is_understood_as_people_write_it(minutes: int, said: str) -> None:
    found = {each: duration_s(each) for each in said.split("|")}
    assert found == dict.fromkeys(found, 60 * minutes)
