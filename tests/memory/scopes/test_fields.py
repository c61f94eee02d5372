"""Every kind of field and of entry has a rule for erasures, and the rule is applied."""

from dataclasses import asdict, replace

import orjson
import pytest

from memory.behaviors.behavior_store import BehaviorState, Kept
from memory.behaviors.statements import LearningMode
from memory.documents import Chunk, Document
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Write, without
from memory.scopes.entries import (
    THE_ONE_BEFORE,
    Again,
    Checked,
    Ended,
    Fact,
    Hidden,
    Pinned,
    Record,
    ScopeEntry,
    Synopsis,
    read,
    written,
)
from memory.scopes.fields import (
    Digest,
    Failures,
    Field,
    LearningPause,
    PersonsZone,
    State,
    StateUntrusted,
    ToolWrites,
    WaitingWrite,
    Watermark,
    Written,
    read_field,
)
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Erased, Source, Wording
from memory.scopes.writes import Keep, Remember, to_json
from memory.store.keys import Scope
from tests.memory.learning.scripted import talk

ANN = 7
GROUP = Scope.of_chat(-5)
WANTED = Remember("sails", sender_id=ANN)
SOURCE = Source(GROUP.tag, 1, 0, ANN)

THAT_REST_ON_THE_FIRST_MESSAGE = [
    State('{"goal":"sail"}'),
    StateUntrusted(is_untrusted=True),
    Digest(1, "looked it up"),
    ToolWrites("31", 1, (WANTED,)),
    WaitingWrite("nonce", 1, 1_000, "", WANTED),
    Kept("diary", "boat", 1, "Aurora"),
    BehaviorState("diary", 1, is_untrusted=True, text="a | b"),
    Document("abc", "a.txt", "0f", 1, added_at=1_000, sender_id=ANN),
]
NUMBERS_ONLY = [
    Watermark("facts", 1),
    Failures("facts", 2, 1_000),
    LearningPause("vectors", 1, 1_000, "a model"),
    Written(GROUP.tag, "31"),
    LearningMode("ask"),
    PersonsZone("Europe/Berlin"),
]
FIELDS = [*THAT_REST_ON_THE_FIRST_MESSAGE, *NUMBERS_ONLY]
ENTRIES = [
    Fact(1, "sails", (SOURCE,), 1_000, replaced=(Wording(0, "rows", (SOURCE,), 1, 1_000),)),
    Ended(1, 2_000, THE_ONE_BEFORE),
    Again(1, SOURCE),
    Synopsis(4, "boats", "", "", "", "", "", "", 1, 2, 1, 2, GROUP.tag),
    Chunk(5, "abc", 0, "a passage", "a.txt"),
    Hidden(1),
    Pinned(1),
    Checked(1, 3_000, is_confirmed=True),
]


def test_the_examples_here_are_of_every_kind() -> None:
    core = {kind for kind in Field.KINDS.values() if not kind.__module__.startswith("bot.")}
    assert {type(field) for field in FIELDS} == core
    assert {type(entry) for entry in ENTRIES} == set(ScopeEntry.KINDS.values())


@pytest.mark.parametrize("field", FIELDS, ids=lambda field: field.PREFIX)
def test_a_field_is_read_as_it_was_written(field: Field) -> None:
    assert read_field(field.name, field.stored) == field
    here = ScopeMemory(GROUP)
    here.fields = {field.name: field.stored, "other": "x"}
    assert here.all(type(field)) == [field]


def test_a_field_of_an_older_version_has_defaults_for_what_that_did_not_store() -> None:
    assert read_field("failures:facts", "2") == Failures("facts", 2)
    assert read_field("behavior_state:diary", "1|0|a") == BehaviorState("diary", 1, text="a")


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.KIND)
def test_an_entry_is_stored_without_defaults_and_read_either_way(entry: ScopeEntry) -> None:
    kind, content = written(entry)
    assert read(1, kind, content) == read(1, kind, orjson.dumps(asdict(entry)))  # type: ignore[call-overload]  # all are dataclasses
    assert not orjson.loads(content).keys() & {"id", "was_unpinned", "link", "hidden"}


def test_a_field_without_content_is_removed() -> None:
    empty = [State(""), Failures("facts"), LearningPause("vectors"), Kept("diary", "boat", 1, "")]
    assert [field.stored for field in empty] == [""] * len(empty)


async def test_all_that_rests_on_an_erased_message_or_person_is_erased(memory: Memory) -> None:
    await talk(memory, "one", conversation=GROUP)
    scope_memory = await memory.scopes.read(GROUP)
    await memory.scopes.write(scope_memory, Write(ENTRIES, FIELDS))
    await memory.forgetting.erase_share(GROUP, ANN, 2_000_000_000, "receipt")
    here = await memory.scopes.read(GROUP)
    assert here.fields.keys() == {field.name for field in NUMBERS_ONLY} | {
        "watermark:running_state"
    }
    assert here.of_kind(Record) == []
    assert await memory.client.call("XLEN", memory.keys.scope(GROUP).log) == 0


async def test_what_a_commit_leaves_for_learning_is_a_field_that_is_known(memory: Memory) -> None:
    keep = Keep("diary", "boat", "Aurora")
    closing = Closing(digest="looked it up", writes=to_json([keep]))
    await talk(memory, "one", conversation=GROUP, closing=closing)
    here = await memory.scopes.read(GROUP)
    assert here.all(Digest) == [Digest(2, "looked it up")]
    assert [(each.seq, each.writes) for each in here.all(ToolWrites)] == [(1, (keep,))]
    assert len(here.fields) == 2


async def test_what_rests_on_other_messages_stays(memory: Memory) -> None:
    await talk(memory, "one", conversation=GROUP)
    kept = Kept("diary", "boat", 9, "Aurora")
    await memory.scopes.write(await memory.scopes.read(GROUP), Write(fields=[kept]))
    await memory.forgetting.erase_messages(GROUP, [1, 2], "receipt")
    assert (await memory.scopes.read(GROUP)).all(Kept) == [kept]


def test_a_field_of_another_version_goes_with_any_message() -> None:
    here = ScopeMemory(GROUP, ("0", "0"))
    here.fields = {"invented": "a secret"}
    assert without(here, Erased(GROUP.tag, [1])).removed == ["invented"]


def test_messages_of_another_conversation_take_nothing_that_rests_on_messages_here() -> None:
    here = ScopeMemory(GROUP, ("0", "0"))
    here.fields = {field.name: field.stored for field in FIELDS}
    removed = without(here, Erased("c:9:0", [1])).removed
    assert removed == ["state", "state_untrusted"]


async def test_a_revision_starts_again_if_a_field_was_written_since(memory: Memory) -> None:
    """The field might rest on what is erased."""
    await talk(memory, "one", conversation=GROUP)
    late = WaitingWrite("nonce", 1, 1_000, "", WANTED)
    read, calls = memory.scopes.read, 0

    async def decide(here: ScopeMemory):  # type: ignore[no-untyped-def]  # noqa: ANN202
        nonlocal calls
        calls += 1
        if calls == 1:
            await memory.scopes.write(await read(GROUP), Write(fields=[late]))
        return replace(without(here, Erased(GROUP.tag, [1])), messages=[1])

    await memory.scopes.update(GROUP, decide)
    assert calls == 2
    assert (await read(GROUP)).all(WaitingWrite) == []


@pytest.mark.parametrize("missing", ["PREFIX", "without"])
def test_what_is_stored_cannot_be_defined_without_its_rules(missing: str) -> None:
    """So a new one cannot survive an erasure unnoticed."""
    body = {name: vars(Kept)[name] for name in ("PREFIX", "without")}
    with pytest.raises(TypeError, match="Pinned has the prefix of Kept"):
        type("Pinned", (Field,), body)
    assert Field.KINDS[Kept.PREFIX] is Kept
    body["PREFIX"] = "pinned"
    del body[missing]
    with pytest.raises(TypeError, match=f"Pinned does not define `{missing}`"):
        type("Pinned", (Field,), body)
    assert "pinned" not in Field.KINDS
    with pytest.raises(TypeError, match="NoRule does not define `without`"):
        type("NoRule", (ScopeEntry,), {"KIND": "no_rule"})
    assert "no_rule" not in ScopeEntry.KINDS


@pytest.mark.parametrize("name", ["key", "name", "stored", "read", "id"])
def test_a_kind_with_an_attribute_that_we_use_ourselves_cannot_be_defined(name: str) -> None:
    """A field whose `name` is a first name would take the place of another field."""
    base, mark = (ScopeEntry, "KIND") if name == "id" else (Field, "PREFIX")
    body = {mark: "greeted", "__annotations__": {name: str}, "without": Kept.without}
    with pytest.raises(TypeError, match=f"Greeted needs another name for `{name}`"):
        type("Greeted", (base,), body)
    assert "greeted" not in {*Field.KINDS, *ScopeEntry.KINDS}


def test_a_kind_of_entry_keeps_its_class() -> None:
    with pytest.raises(TypeError, match="Fact has the kind of Fact"):
        type("Fact", (ScopeEntry,), {"KIND": "fact", "without": Kept.without})
    assert ScopeEntry.KINDS["fact"] is Fact
