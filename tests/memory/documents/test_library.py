"""Documents of a scope: put, put again, list, remove; nothing is embedded twice."""

from functools import partial

import pytest

from memory.documents import Chunk, Library, Origin, Section, documents, key_of
from memory.memory import Memory
from memory.scopes.changes import NotWritten, Revision, Write
from memory.scopes.sources import Trust
from memory.store.keys import Scope
from tests.memory.clients import DyingClient
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE
from tests.memory.words_embedder import WordsEmbedder
from tests.stored import everything_stored

CATS = [Section("Cats sleep.", "page 1"), Section("Cats purr.", "page 2")]
DOGS = [Section("Dogs bark.", "page 1")]


async def put(
    memory: Memory, library: Library, name: str, passages: list[Section], link: str = ""
) -> tuple[bool, int]:
    scope_memory = await memory.scopes.read(HERE)
    done = await library.put(scope_memory, Origin(name, link, 1_000, 7), passages)
    return done.is_new, done.replaced


async def texts(memory: Memory) -> list[str]:
    return [chunk.text for chunk in (await memory.scopes.read(HERE)).of_kind(Chunk)]


async def test_a_document_is_stored_as_passages_with_their_source(
    memory: Memory, library: Library
) -> None:
    assert await put(memory, library, "pets.pdf", CATS, "https://pets") == (True, 0)

    scope_memory = await memory.scopes.read(HERE)
    (document,) = await library.listed(HERE)
    assert (document.title, document.passages, document.nbytes) == ("pets.pdf", 2, 1_000)
    assert scope_memory.of_kind(Chunk) == [
        Chunk(
            id=number + 1,
            document=key_of("pets.pdf"),
            number=number,
            text=passage.text,
            title="pets.pdf",
            link="https://pets",
            place=passage.place,
            added_at=document.added_at,
            trust=Trust.UNTRUSTED,
        )
        for number, passage in enumerate(CATS)
    ]


async def test_the_same_content_again_changes_nothing_and_is_not_embedded_again(
    memory: Memory, library: Library, embedder: WordsEmbedder
) -> None:
    await put(memory, library, "pets.pdf", CATS)
    await memory.learn(HERE)
    before = await memory.scopes.read(HERE)
    embedded = list(embedder.texts)
    assert await put(memory, library, "pets.pdf", CATS) == (False, 0)
    await memory.learn(HERE)
    after = await memory.scopes.read(HERE)
    assert (after.version, after.of_kind(Chunk)) == (before.version, before.of_kind(Chunk))
    assert embedder.texts == embedded
    assert len(embedded) == 2


async def test_new_content_or_a_new_link_replaces_the_document_of_that_name(
    memory: Memory, library: Library
) -> None:
    await put(memory, library, "pets.pdf", CATS)
    assert await put(memory, library, "pets.pdf", DOGS) == (True, 2)
    assert await put(memory, library, "pets.pdf", DOGS, "https://pets") == (True, 1)
    assert await texts(memory) == ["Dogs bark."]
    assert [each.passages for each in await library.listed(HERE)] == [1]


async def test_the_next_put_erases_what_a_crash_left(memory: Memory, library: Library) -> None:
    await put(memory, library, "pets.pdf", DOGS)
    old = [Chunk(0, key_of("pets.pdf"), 0, "Cats sleep.", "pets.pdf", added_at=1.0)]
    scope_memory = await memory.scopes.read(HERE)
    await memory.scopes.write(scope_memory, Write(old))
    assert await put(memory, library, "pets.pdf", DOGS) == (False, 1)
    assert await texts(memory) == ["Dogs bark."]


async def test_two_documents_do_not_affect_each_other(memory: Memory, library: Library) -> None:
    await put(memory, library, "cats.pdf", CATS)
    await put(memory, library, "dogs.pdf", DOGS)
    await library.remove(HERE, key_of("cats.pdf"))
    assert await texts(memory) == ["Dogs bark."]
    assert [each.title for each in await library.listed(HERE)] == ["dogs.pdf"]


async def test_a_removed_document_leaves_no_bytes(
    memory: Memory, library: Library, valkey: str
) -> None:
    await put(memory, library, "canary.pdf", [Section("The canary sings.")])
    await memory.learn(HERE)
    removed = await library.remove(HERE, key_of("canary.pdf"))
    stored = await everything_stored(valkey)
    assert removed
    assert b"canary" not in stored.lower()
    assert await library.remove(HERE, key_of("canary.pdf")) is None


async def test_a_document_that_is_replaced_while_it_is_removed_leaves_no_passage(
    memory: Memory, library: Library, dying: DyingClient
) -> None:
    beside = Library(memory_of(dying).scopes)
    dying.then = partial(put, memory, library, "pets.pdf", DOGS)
    for left in dying.deaths():
        dying.calls_left = 1_000
        await library.remove(HERE, key_of("pets.pdf"))
        await put(memory, library, "pets.pdf", CATS)
        dying.calls_left = left
        await beside.remove(HERE, key_of("pets.pdf"))
        listed = await library.listed(HERE)
        assert await texts(memory) == ["Dogs bark."] * len(listed)


async def test_a_put_is_refused_after_an_erasure(memory: Memory, library: Library) -> None:
    scope_memory = await memory.scopes.read(HERE)
    await memory.scopes.update(HERE, lambda _: Revision(records=[99]))
    with pytest.raises(NotWritten):
        await library.put(scope_memory, Origin("late.pdf"), CATS)
    assert documents(await memory.scopes.read(HERE)) == {}


async def test_a_new_document_is_scheduled_for_embedding(memory: Memory, library: Library) -> None:
    await put(memory, library, "pets.pdf", CATS)
    assert await memory.client.call("ZRANGE", memory.keys.learning, 0, -1) == [HERE.tag.encode()]


async def test_the_operators_documents_do_not_expire(memory: Memory, library: Library) -> None:
    scope = Scope.of_namespace("manual")
    await library.put(await memory.scopes.read(scope), Origin("a.pdf"), CATS)
    await put(memory, library, "a.pdf", CATS)

    async def ttl(of: Scope) -> int:
        seconds: int = await memory.client.call("TTL", memory.keys.scope(of).records)
        return seconds

    assert await ttl(scope) == -1
    assert await ttl(HERE) > 0
