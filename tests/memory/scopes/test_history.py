"""`ChatHistory` and the context around it: what is appended is selected, found and erased."""

import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args
from zoneinfo import ZoneInfo

import pytest

from memory.behaviors.context import AgentContext
from memory.erasure.jobs import Job, JobKind
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Outcome
from memory.queue.open_turn import Closing
from memory.scopes.changes import Revision
from memory.scopes.fields import PersonsZone
from memory.scopes.history import ChatHistory
from memory.scopes.selectors import MessageWindowMessageSelector, TokenWindowMessageSelector
from memory.search.message_search import SearchFilter
from memory.store.client import RedisClient
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.lab.recall import found_alone
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import ON_A_SERVER, OPTIONS, memory_of
from tests.memory.turns import (
    ANN,
    GROUP,
    HERE,
    begin,
    carry_out,
    clear,
    exchange,
    finish,
    put,
    read_by,
    take,
    turn_of,
)
from tests.memory.words_embedder import WordsEmbedder

KEYS = {"chat_id": HERE.chat_id}
BOAT = "My boat is called Aurora"


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


async def history_of(memory: Memory, **keys: object) -> ChatHistory:
    context = await AgentContext.get_or_create(keys or KEYS, memory.histories, now=0)
    return context.chat_history


async def talk(history: ChatHistory, *exchanges: tuple[str, str]) -> None:
    for number, (question, answer) in enumerate(exchanges):
        await history.append_user_message(question, 1000.0 + number, sender_id=ANN)
        await history.append_assistant_message(answer, 1000.5 + number)


async def remembering(memory: Memory, *exchanges: tuple[str, str]) -> ChatHistory:
    """Return a history in which all that was said has its vectors."""
    await talk(await history_of(memory), *exchanges)
    await memory.learn(HERE)
    return await history_of(memory)


def varied(exchanges: int) -> list[tuple[str, str]]:
    """Return talk that shares no words, so that nothing in it is near anything else."""
    return [(f"{n}a {n}b {n}c", f"{n}d {n}e {n}f") for n in range(exchanges)]


async def turned(memory: Memory) -> ChatHistory:
    """Return the history of a turn that a worker begins."""
    return await read_by(memory, await turn_of(memory, 1))


async def read_outside(memory: Memory) -> ChatHistory:
    """Return the history as a command reads it."""
    return await ChatHistory.read(memory.histories, HERE)


Reading = Callable[[Memory], Awaitable[ChatHistory]]


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]


# --- one history for equal keys


async def test_the_same_keys_in_any_order_give_the_same_history(memory: Memory) -> None:
    mine = await history_of(memory, user="ann", room="a:b&c=d")
    await talk(mine, ("Hello", "Hi"))
    again = await history_of(memory, room="a:b&c=d", user="ann")
    assert texts(again.messages) == ["Hello", "Hi"]


@pytest.mark.parametrize(
    "others", [{"user": "ann"}, {"user": "ann", "room": "2"}, {"user": "ann&room=1"}, {"room": "1"}]
)
async def test_other_keys_give_another_history(memory: Memory, others: dict[str, str]) -> None:
    await talk(await history_of(memory, user="ann", room="1"), ("Hello", "Hi"))
    assert texts((await history_of(memory, **others)).messages) == []


async def test_no_keys_are_refused(memory: Memory) -> None:
    with pytest.raises(ValueError, match="empty"):
        await AgentContext.get_or_create({}, memory.histories, now=0)


async def test_a_chats_keys_name_the_conversation_that_turns_write(memory: Memory) -> None:
    await exchange(memory, 1)
    assert texts((await history_of(memory, chat_id=HERE.chat_id)).messages) == ["text 1", "yes"]
    assert texts((await history_of(memory, topic_id=0, chat_id=HERE.chat_id)).messages)
    assert not (await history_of(memory, chat_id=HERE.chat_id, topic_id=3)).messages


async def test_a_moved_groups_context_is_that_of_the_old_group(memory: Memory) -> None:
    await talk(await history_of(memory, chat_id=GROUP.chat_id), ("Hello", "Hi"))
    await memory.mailbox.move(GROUP, Scope.of_chat(-100))
    context = await AgentContext.get_or_create({"chat_id": -100}, memory.histories, now=0)
    assert context.conversation == GROUP
    assert texts(context.chat_history.messages) == ["Hello", "Hi"]


# --- append, select


async def test_an_appended_message_is_read_back_as_it_was(memory: Memory) -> None:
    history = await history_of(memory)
    text = "Zoë said:\n<|endoftext|> 🧭 שלום"
    said = await history.append_user_message(text, 1234.5, sender_id=ANN, sender_name="Ann|1")
    assert said.tokens == memory.histories.tokens.count(text)
    assert list((await history_of(memory)).messages) == [said]


async def test_a_comment_and_a_forwarded_message_are_one_exchange_and_keep_their_origins(
    memory: Memory, other: Memory
) -> None:
    turn = await begin(memory, 1)
    comment = Message(
        1, 1, "user", "Look", 1_000.0, ANN, "Ann", (1,), 3, unseen="photo", replied_to=9
    )
    forwarded = Message(
        *(2, 1, "user", "I live in Oslo", 1_000.0, ANN, "Ann", (2, 5), 3),
        is_first_party=False,
        lengths=(1, -1),
        forwarded_from="Ben|\u2028x",
        forwarded_at=900.0,
    )
    answer = Message(3, 1, "assistant", "yes", 1_001.0, tokens=1, is_first_party=False)
    await finish(memory, turn, [comment, forwarded, answer])
    stored = await ChatHistory.read(other.histories, HERE)
    assert list(stored.messages) == [comment, forwarded, answer]
    assert await memory.forgetting.find_exchange(HERE, 1) == [comment, answer]
    assert await memory.forgetting.find_exchange(HERE, 2) == [forwarded, answer]


async def test_the_last_user_message_is_a_persons_newest(memory: Memory) -> None:
    history = await history_of(memory)
    assert history.last_user_message is None
    await talk(history, ("One?", "1"), ("Two?", "2"))
    assert history.last_user_message == history.messages[2]


async def test_a_selector_sees_the_current_session_only(memory: Memory) -> None:
    await exchange(memory, 1)
    ending = await begin(memory, 2)
    cursor = memory.histories.cursor(HERE)
    await memory.turns.commit(ending, [], cursor, closing=Closing(ends_session=True))
    history = await history_of(memory)
    assert history.select_messages(MessageWindowMessageSelector(9)) == ()
    await talk(history, ("Two?", "2"))
    for held in (history, await history_of(memory)):
        assert texts(held.select_messages(TokenWindowMessageSelector(1000))) == ["Two?", "2"]


async def test_a_selector_sees_no_more_than_the_tail(memory: Memory) -> None:
    history = await history_of(memory)
    await talk(history, *[(f"question {number}", "yes") for number in range(OPTIONS.tail)])
    shown = history.select_messages(MessageWindowMessageSelector(10**6))
    assert list(shown) == list(history.messages[-OPTIONS.tail :])


async def test_what_another_process_said_between_two_appends_is_not_passed_over(
    memory: Memory, other: Memory
) -> None:
    mine = await remembering(memory, *varied(OPTIONS.tail))
    await talk(await history_of(other), (BOAT, "Nice"))
    await mine.append_user_message("Mine", 2000.0)
    assert (await mine.search("boat", 8))[0].messages[0].text == BOAT
    history = await turned(memory)
    assert texts(history.select_messages(MessageWindowMessageSelector(3))) == [BOAT, "Nice", "Mine"]


# --- search


async def test_a_hit_brings_its_whole_exchange(memory: Memory) -> None:
    history = await remembering(memory, ("Hello", "Hi"), (BOAT, "Nice"), ("Bye", "See you"))
    found, *_ = await history.search("What is my boat called?", 8)
    assert texts(found.messages) == [BOAT, "Nice"]
    assert found.seq == 3
    assert found.lexical > 0
    assert not found.is_boosted


async def test_questions_and_answers_are_found_unless_the_window_shows_them(memory: Memory) -> None:
    said = [(f"lighthouse {name}", f"The lighthouse {name}!") for name in "abcde"]
    history = await remembering(memory, *said)
    found = await history.search("Which lighthouse?", 20)
    assert sorted(result.seq for result in found) == list(range(1, 11))
    assert {len(result.messages) for result in found} == {2}
    found = await history.search("Which lighthouse?", 20, exclude={2, 3, 4})
    assert sorted(result.seq for result in found) == [1, *range(5, 11)]


async def test_a_question_is_not_drowned_by_the_line_before_it(memory: Memory) -> None:
    said = [(f"Late train to Oslo, number {n}", "I see") for n in range(8)]
    other = [(f"Soup number {n}", "Good") for n in range(40)]
    history = await remembering(memory, ("My doctor is Salis", "Noted"), *said, *other)
    found = await history.search("A late train to Oslo, again\nWho is my doctor?", 8)
    assert found[0].hit.text == "My doctor is Salis"


@pytest.mark.parametrize(("text", "k", "shown"), [(" ", 8, ()), ("x", 0, ()), ("x", 8, (1, 2))])
async def test_nothing_asked_and_nothing_left_to_find_cost_no_embedding(
    memory: Memory, embedder: WordsEmbedder, text: str, k: int, shown: Sequence[int]
) -> None:
    history = await remembering(memory, (BOAT, "Nice"))
    embedded = len(embedder.calls)
    assert await history.search(text, k, exclude=shown) == []
    assert len(embedder.calls) == embedded


async def test_the_event_loop_neither_indexes_much_nor_reads_a_long_question(
    memory: Memory,
) -> None:
    history, threads = await history_of(memory), list[bool]()
    await talk(history, *[(f"{BOAT} {number}", "Noted.") for number in range(25)])

    def note(_: Message) -> bool:
        threads.append(threading.current_thread() is threading.main_thread())
        return True

    for question in ("Which boat?", "Which boat?", "Which boat? " * 50):
        await history.search(question, 3, search_filter=SearchFilter(is_meant=note))
    assert threads[::50] == [False, True, False]


async def test_the_first_thing_said_needs_no_word_of_the_question(memory: Memory) -> None:
    history = await remembering(memory, ("My boat is blue", "I see"), *varied(40))
    found = await history.search("What was the first thing I told you?", 4)
    assert texts([each.hit for each in found])[0] == "My boat is blue"
    seq = found[0].seq
    again = await history.search("What was the first thing I told you?", 4, exclude={seq})
    assert seq not in [each.seq for each in again]


async def test_by_words_alone_a_list_also_has_what_no_word_of_the_question_finds(
    store: RedisClient,
) -> None:
    memory = memory_of(store, bot=1)
    said = [(f"Good soup again, number {n % 4}", "Yes") for n in range(40)]
    said[3] = ("The museum in Bonn was open", "Good")
    said[30] = ("Half of the Prado was shut", "A pity")
    history = await remembering(memory, *said)
    question = "Which museums have I seen?"
    results = await history.search(question, 8)
    found = [each.hit.text for each in results]
    assert (found[0], results[0].dense) == ("The museum in Bonn was open", 0.0)
    assert "Half of the Prado was shut" in found
    assert len(results) == len({each.seq for each in results})
    rows = await found_alone(history, question, 8)  # people look for words
    assert "Half of the Prado was shut" not in {history.messages[row].text for row in rows}


async def test_a_question_that_finds_little_finds_little_that_resembles_it(
    store: RedisClient,
) -> None:
    memory = memory_of(store, bot=1)
    said = [f"Good soup again, number {n % 4}" for n in range(40)]
    said[20] = "My apprentice Joaquín left for Murano"
    said[1::10] = ["Joaquín paints", "Murano is far"] * 2
    history = await history_of(memory)
    for n, text in enumerate(said):
        await history.append_user_message(text, 10_000.0 * n)
    found = await history.search("Who is my apprentice?", 48)
    assert len([each for each in found if each.hit.text in said[1::10]]) == 2


async def test_if_embedding_fails_words_are_found(memory: Memory, embedder: WordsEmbedder) -> None:
    history = await remembering(memory, (BOAT, "Nice"))
    embedder.fails_at = len(embedder.calls) + 1
    out_of_order, again = [await history.search("boat", 8) for _ in range(2)]
    assert [found[0].seq for found in (out_of_order, again)] == [1, 1]
    assert out_of_order[0].dense == 0.0 != again[0].dense


@pytest.mark.parametrize(("operators", "persons"), [("Europe/Kyiv", ""), ("UTC", "Europe/Kyiv")])
async def test_a_message_is_found_by_its_day_in_the_zone_of_its_person_or_of_the_operator(
    store: RedisClient, monkeypatch: pytest.MonkeyPatch, operators: str, persons: str
) -> None:
    memory = memory_of(store, options=replace(OPTIONS, zone=ZoneInfo(operators)))
    await memory.scopes.set_field(HERE.facts_scope, PersonsZone(persons))
    memory.scopes.drop(HERE.facts_scope)  # another process than the one that was told
    history = await history_of(memory)
    last_of_may = datetime(2026, 5, 31, 22, tzinfo=UTC).timestamp()
    await history.append_user_message("I bought a boat", last_of_may - 3_600 * 24)
    await history.append_user_message("I sold my bicycle", last_of_may)
    monkeypatch.setattr("memory.scopes.history.time", lambda: last_of_may + 3_600 * 24)
    for question in ("What happened in June?", "What happened yesterday?"):
        [found] = await history.search(question, 8)
        assert found.messages[0].text == "I sold my bicycle"


# --- cold and warm


async def test_a_cold_long_history_is_read_to_its_tail_and_filled_by_a_search(
    memory: Memory, other: Memory
) -> None:
    fillers = [(f"question {number}", "yes") for number in range(OPTIONS.tail)]
    await remembering(memory, (BOAT, "Nice"), *fillers)
    history = await turned(other)
    assert len(history.messages) == OPTIONS.tail
    found, *_ = await history.search("What is my boat called?", 8)
    assert texts(found.messages) == [BOAT, "Nice"]
    assert len(history.messages) == 2 + 2 * OPTIONS.tail


@ON_A_SERVER
async def test_a_cold_history_fills_in_one_round_trip(memory: Memory, other: Memory) -> None:
    await remembering(memory, *[(f"boat {number}", "yes") for number in range(OPTIONS.tail)])
    history = await turned(other)
    trips = other.client.round_trips
    assert await history.search("boat", 8)
    assert other.client.round_trips == trips + 1


async def test_a_warm_process_is_sent_only_what_is_new(memory: Memory, other: Memory) -> None:
    await remembering(memory, *varied(OPTIONS.tail))
    await remembering(other, ("The oven is broken", "Oh"))
    turn = await turn_of(memory, 1)
    loaded = turn.loaded.messages
    assert loaded
    assert [columns[b"t"] for _, columns in loaded.entries] == [b"The oven is broken", b"Oh"]
    assert [seq for seq, _ in loaded.vectors] == [seq for seq, _ in loaded.entries]
    history = await read_by(memory, turn)
    trips = memory.client.round_trips
    assert await history.search("oven", 8)
    assert memory.client.round_trips == trips


async def test_the_second_turn_does_not_read_the_first_one_again(memory: Memory) -> None:
    turn = await turn_of(memory, 1)
    said = [Message(0, 0, "user", BOAT, 1_795_000_000.1235, ANN)]
    history = await read_by(memory, turn)
    closed = await memory.turns.commit(turn, said, memory.histories.cursor(HERE))
    history.committed(said, closed.exchange, closed.first_seq)
    turn = await turn_of(memory, 2)
    trips = memory.client.round_trips
    history = await read_by(memory, turn)
    assert texts(history.messages) == [BOAT]
    assert memory.client.round_trips == trips


async def test_a_history_that_left_the_cache_meanwhile_is_read_again(memory: Memory) -> None:
    await remembering(memory, (BOAT, "Nice"), ("Hello", "Hi"))
    turn = await turn_of(memory, 1)
    memory.scopes.drop(HERE)
    history = await read_by(memory, turn)
    assert texts(history.messages) == [BOAT, "Nice", "Hello", "Hi"]
    found, *_ = await history.search("boat", 8)
    assert texts(found.messages) == [BOAT, "Nice"]


@ON_A_SERVER
async def test_outside_of_a_turn_no_warm_history_is_read(memory: Memory, other: Memory) -> None:
    """The metadata, one page with what another process has added, and the records."""
    await remembering(memory, *varied(150))
    await remembering(other, (BOAT, "Nice"))
    trips = memory.client.round_trips
    history = await ChatHistory.read(memory.histories, HERE)
    assert memory.client.round_trips == trips + 3
    assert len(history.messages) == 302
    found, *_ = await history.search("boat", 8)
    assert texts(found.messages) == [BOAT, "Nice"]


# --- erasure


@pytest.mark.parametrize("read", [turned, read_outside])
async def test_after_anothers_erasure_nothing_warm_counts(
    memory: Memory, other: Memory, read: Reading
) -> None:
    await talk(held := await history_of(memory), (BOAT, "Nice"))
    await (await history_of(other)).clear()
    with pytest.raises(LeaseLost):
        await held.append_user_message("late", 0.0)
    history = await read(memory)
    assert (list(history.messages), await history.search("boat", 8)) == ([], [])
    assert texts((await history_of(other)).messages) == []


@pytest.mark.parametrize("exchanges", [1, 3])
@pytest.mark.parametrize("by", ["nobody", "another process"])
@pytest.mark.parametrize("read", [turned, read_outside])
async def test_of_a_conversation_that_expired_nothing_warm_counts_when_it_begins_anew(
    memory: Memory, other: Memory, exchanges: int, by: str, read: Reading
) -> None:
    await talk(await history_of(memory), *varied(exchanges))
    await memory.client.call("DEL", *memory.keys.scope(HERE))
    said = []
    if by == "another process":
        said = [await (await history_of(other)).append_user_message("new", 9000.0)]
    history = await read(memory)
    assert texts(history.messages) == texts(said)
    assert await history.search("0a", 8) == []


async def test_no_turn_reads_more_after_an_erasure(memory: Memory, other: Memory) -> None:
    await remembering(memory, *[(f"question {n}", "yes") for n in range(OPTIONS.tail)])
    history = await turned(other)
    await (await history_of(memory)).clear()
    with pytest.raises(LeaseLost):
        await history.search("question", 8)


async def test_a_cleared_history_is_empty_and_goes_on(memory: Memory) -> None:
    history = await remembering(memory, (BOAT, "Nice"))
    await history.clear()
    assert (list(history.messages), await history.search("boat", 8)) == ([], [])
    await talk(history, ("Hello", "Hi"))
    assert texts((await history_of(memory)).messages) == ["Hello", "Hi"]
    assert history.messages[0].seq == 3
    assert memory.store.erased.is_set()


async def test_clearing_takes_what_waits_and_refuses_nothing_that_comes(memory: Memory) -> None:
    await put(memory, 5)
    history = await history_of(memory)
    await history.clear()
    assert await put(memory, 6) == Outcome.TAKEN
    assert [entry.update_id for entry in (await take(memory)).entries] == [6]


async def test_clearing_keeps_an_earlier_confirmations_cut(memory: Memory) -> None:
    await clear(memory, 10, HERE)
    await (await history_of(memory)).clear()
    assert [await put(memory, 9), await put(memory, 11)] == [Outcome.DROPPED, Outcome.TAKEN]


@pytest.mark.parametrize("kind", get_args(JobKind))
async def test_a_forgetting_takes_what_no_turn_appended(memory: Memory, kind: JobKind) -> None:
    await talk(await history_of(memory), ("I am Ann", "Hello"))
    await carry_out(memory, Job("job", kind, ANN, 10, time.time(), b""))
    assert texts((await history_of(memory)).messages) == []


@pytest.mark.parametrize("are_embedded", [True, False])
async def test_a_long_read_holds_no_vectors_of_two_lengths(
    interrupted: InterruptedClient, store: RedisClient, *, are_embedded: bool
) -> None:
    """While a page is read the model changes behind its name, or the first vectors come."""
    memory = memory_of(interrupted, WordsEmbedder())
    learner = memory_of(store, embedder := WordsEmbedder())
    await talk(await history_of(learner), *[(f"boat {n}", "yes") for n in range(250)])
    if are_embedded:
        await learner.learn(HERE)

    async def change_model() -> None:
        embedder.dimensions = 64
        await talk(await history_of(learner), ("one more", "yes"))
        for _ in range(2):  # the old vectors go, then all come
            await learner.learn(HERE)

    interrupted.behind["XRANGE"] = change_model
    history = await ChatHistory.read(memory.histories, HERE)
    assert interrupted.behind == {}
    assert len(await history.search("boat", 3)) == 3


async def test_vectors_are_never_taken_for_those_of_the_model_before(
    interrupted: InterruptedClient, store: RedisClient
) -> None:
    """Another model embeds everything again between the read of the versions and of the vectors."""
    memory = memory_of(interrupted, WordsEmbedder())
    learner = memory_of(store, embedder := WordsEmbedder("earlier"))
    await talk(await history_of(learner), ("boat", "yes"))
    await learner.learn(HERE)

    async def change_model() -> None:
        embedder.fingerprint = "words"
        await learner.learn(HERE)

    interrupted.behind["XRANGE"] = change_model
    _, stream = await memory.scopes.read_messages(HERE)
    [fingerprint] = await memory.store.read_meta(HERE, "vector_fingerprint")
    assert stream.fingerprint == fingerprint.decode() != ""
    assert stream.vectors_count == 2


@pytest.mark.parametrize("what", ["the server was replaced", "a message came between"])
async def test_what_changed_while_a_warm_history_was_read_is_read_again(
    interrupted: InterruptedClient, store: RedisClient, what: str
) -> None:
    memory = memory_of(interrupted)
    other = memory_of(store)
    await talk(await history_of(other), (BOAT, "Nice"))
    mine = await ChatHistory.read(memory.histories, HERE)

    async def meanwhile() -> None:
        if what == "a message came between":
            await (await history_of(other)).append_user_message("of another", 5.0)
            await mine.append_user_message("mine", 6.0)
        else:
            await store.call("XDEL", other.keys.scope(HERE).log, "2-0")
            memory.scopes._server = "another"
            await memory.scopes.drop_lost()

    interrupted.behind["XRANGE"] = meanwhile
    history = await ChatHistory.read(memory.histories, HERE)
    stored = await ChatHistory.read(memory_of(store).histories, HERE)
    assert texts(history.messages) == texts(stored.messages)


async def test_after_an_erasure_of_the_newest_messages_all_is_read_once(memory: Memory) -> None:
    await talk(await history_of(memory), (BOAT, "Nice"), ("Which boat?", "Aurora"))
    await memory.scopes.revise(await memory.scopes.read(HERE), Revision(messages=[3, 4]))
    await (await read_outside(memory)).append_user_message("Which boat is it?", 1.7e9)
    assert memory.scopes.cursor(HERE).message == 5
    assert len((await read_outside(memory)).messages) == 3
