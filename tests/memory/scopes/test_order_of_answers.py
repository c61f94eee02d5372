"""What a process has of a scope is what is stored, whoever wrote it and in whatever order it reads.

What nobody has changed since is not sent again.
"""

from random import Random

import orjson

from memory.memory import Memory
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Fact, Record
from memory.scopes.fields import State, Watermark
from memory.scopes.log import Delta
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Source
from memory.store.client import RedisClient
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE
from tests.memory.words_embedder import WordsEmbedder


def _fact(text: str) -> Fact:
    return Fact(0, text, (Source(HERE.tag, 1),), said_at=1.0)


def _held(scope_memory: ScopeMemory) -> tuple[object, ...]:
    """Return all that a process has of a scope, with the number of its vectors."""
    fields, is_whole = dict(scope_memory.fields), scope_memory.is_whole
    records, vectors = scope_memory.of_kind(Record), scope_memory.vectors_count
    return scope_memory.version, fields, records, vectors, is_whole


async def test_an_answer_that_was_overtaken_does_not_bring_old_fields_back(memory: Memory) -> None:
    """A turn and the learner read one scope over two connections, and share what they have read."""
    scopes = memory.scopes
    await scopes.write(await scopes.read(HERE), Write(fields=[Watermark("facts", 1)]))
    older = await memory.store.run("read_scope", HERE, {"cursor": {}, "max": 10})
    await scopes.write(await scopes.read(HERE), Write(fields=[Watermark("facts", 2)]))
    assert (await scopes.read(HERE)).watermark("facts") == 2
    assert scopes.join(HERE, Delta.of(older), 10).watermark("facts") == 2
    assert (await scopes.read(HERE)).watermark("facts") == 2


async def test_what_is_unchanged_is_not_sent_again_and_own_writes_are_known(memory: Memory) -> None:
    scopes = memory.scopes
    for number in range(3):
        here = await scopes.read(HERE)
        await scopes.write(here, Write([_fact(f"fact {number}")], [State("{}" + " " * number)]))
    here = await scopes.read(HERE)
    assert [fact.text for fact in here.facts] == ["fact 0", "fact 1", "fact 2"]
    head, *others = await memory.client.pipeline([scopes.reading(HERE)])
    assert "records" not in orjson.loads(head[0])
    assert head[1:] == [[], [], []]
    assert others == []


async def test_an_answer_without_what_is_unchanged_is_not_all_of_a_scope(memory: Memory) -> None:
    """The scope may leave the cache while the answer is on its way."""
    scopes = memory.scopes
    for number in range(2):
        await scopes.write(await scopes.read(HERE), Write([_fact(f"fact {number}")]))
    [answer] = await memory.client.pipeline([scopes.reading(HERE)])
    scopes.drop(HERE)
    assert not scopes.join(HERE, Delta.of(answer), 10).is_whole
    assert len((await scopes.current(HERE)).facts) == 2


async def test_two_processes_that_write_in_turn_have_what_is_stored(store: RedisClient) -> None:
    chance, embedder = Random(21), WordsEmbedder()
    processes = [memory_of(store, embedder) for _ in range(2)]
    for number in range(80):
        memory = chance.choice(processes)
        here = await memory.scopes.read(HERE)
        if chance.random() < 0.3:  # the other one writes between reading and writing
            other = next(each for each in processes if each is not memory).scopes
            await other.write(await other.read(HERE), Write([_fact(f"other {number}")]))
        match chance.randrange(4):
            case 0:
                await memory.scopes.write(here, Write(fields=[State(str(number))]))
            case 1:
                removed = list(here.fields)
                await memory.scopes.write(here, Write([_fact(f"fact {number}")] * 2, (), removed))
            case 2:
                await memory.learn(HERE)
            case _ if chance.random() < 0.2:
                await memory.scopes.update(
                    HERE, lambda read: Revision(records=[fact.id for fact in read.facts[:2]])
                )
        stored = _held(await memory_of(store, embedder).scopes.read(HERE))
        assert _held(await memory.scopes.read(HERE)) == stored
        if chance.random() < 0.5:
            assert [_held(await each.scopes.read(HERE)) for each in processes] == [stored] * 2
