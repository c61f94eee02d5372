"""Each turn of a private chat loads what was learned of the person until then."""

from memory.memory import Memory
from memory.queue.open_turn import OpenTurn
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Fact
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.scopes.sources import Source
from memory.store.keys import Scope
from tests.memory.conftest import memory_of
from tests.memory.turns import ANN, GROUP, HERE, close, exchange, put, read_by, take, texts, turn_of
from tests.valkey import ValkeyServer, opened

PERSON = Scope.of_person(HERE.chat_id)


async def learn(memory: Memory, text: str, scope: Scope = PERSON) -> None:
    scope_memory = await memory.scopes.read(scope)
    write = Write([Fact(0, text, (Source(HERE.tag, 1, 0, ANN),), 1)])
    await memory.scopes.write(scope_memory, write)


async def facts(memory: Memory, turn: OpenTurn) -> list[str]:
    """Return the facts that a behavior finds in a turn."""
    await read_by(memory, turn)
    return [fact.text for fact in (await memory.scopes.current(PERSON)).facts]


async def test_acquire_loads_all_facts_then_only_new_ones(memory: Memory, other: Memory) -> None:
    for number, text in enumerate(("has a cat", "has a boat"), 1):
        await learn(other, text)
        turn = await turn_of(memory, number)
        assert turn.facts
        assert turn.facts.records
        assert len(turn.facts.records.entries) == 1
        known = await facts(memory, turn)
        await close(memory, turn)
    assert known == ["has a cat", "has a boat"]


async def test_a_turn_begun_by_a_commit_finds_new_facts(memory: Memory, other: Memory) -> None:
    turn = await turn_of(memory, 1)
    assert await facts(memory, turn) == []
    await put(memory, 2)
    await learn(other, "has a cat")
    following = (await close(memory, turn)).then
    assert isinstance(following, OpenTurn)
    assert await facts(memory, following) == ["has a cat"]


async def test_after_anothers_erasure_no_old_fact_is_used(memory: Memory, other: Memory) -> None:
    await learn(other, "has a cat")
    turn = await turn_of(memory, 1)
    assert await facts(memory, turn) == ["has a cat"]
    await close(memory, turn)
    await other.scopes.update(PERSON, lambda _: Revision(records=[1]))
    assert await facts(memory, await turn_of(memory, 2)) == []


async def test_a_fact_that_a_restart_of_redis_lost_makes_room_for_another(
    own_server: ValkeyServer,
) -> None:
    """The new one has its number: who deletes what is shown would delete the other one.

    A turn that runs meanwhile has the lost fact, and does not put it back into the cache.
    """
    async with opened(own_server.url) as client:
        memory, other = [memory_of(client) for _ in range(2)]
        await memory.scopes.drop_lost()
        await learn(memory, "has a cat", GROUP)
        turn = await turn_of(memory, 1, GROUP)
        history = await read_by(memory, turn)
        own_server.ask("SAVE")
        await learn(memory, "has a boat", GROUP)
        own_server.kill()
        own_server.start()
        await memory.scopes.drop_lost()
        closed = await close(memory, turn)
        history.committed(closed.messages, closed.exchange, closed.first_seq)
        await learn(other, "has a dog", GROUP)
        known = (await memory.scopes.read(GROUP)).facts
    assert [fact.text for fact in known] == ["has a cat", "has a dog"]


async def test_the_facts_of_a_group_are_in_its_own_scope(memory: Memory) -> None:
    await put(memory, 1, GROUP)
    assert (await take(memory, GROUP)).facts is None
    assert memory.histories.cursor(GROUP) == Cursor()


async def test_numbers_go_on_behind_what_is_stored_if_the_metadata_was_lost(memory: Memory) -> None:
    """An operator may have deleted it, or Redis may have evicted it."""
    metas = [memory.keys.scope(scope).meta for scope in (HERE, PERSON)]
    await exchange(memory, 1)
    await learn(memory, "fact 1")
    turn = await turn_of(memory, 2)
    await memory.client.pipeline([("DEL", meta) for meta in metas])
    await close(memory, turn)
    await learn(memory, "fact 2")
    await memory.client.pipeline([("DEL", meta) for meta in metas])
    committed = await exchange(memory, 3)
    await learn(memory, "fact 3")
    assert (committed.exchange, committed.first_seq) == (3, 5)
    assert len(await texts(memory)) == 6
    assert (await memory.scopes.read(HERE)).source_epoch > 0
    wanted = [f"fact {number}" for number in (1, 2, 3)]
    assert [fact.text for fact in (await memory.scopes.read(PERSON)).facts] == wanted
    await memory.client.call("DEL", memory.keys.scope(HERE).meta)
    history = await ChatHistory.read(memory.histories, HERE)
    appended = await history.append_user_message("Hello", 9.0)
    assert (appended.exchange, appended.seq) == (4, 7)
