"""What a process has read of a scope is joined to what is new, or dropped if in doubt."""

from dataclasses import replace
from datetime import UTC
from typing import Any

import numpy as np
import pytest

from memory.memory import Memory
from memory.message import Message
from memory.scopes.entries import Fact, written
from memory.scopes.log import Cursor, Delta, StreamDelta, packed
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.stream import MessageStream
from memory.search.embeddings import QuestionVectors
from memory.store.keys import Scope
from tests.memory.turns import HERE

TAIL = 10
ROW = packed(np.full(4, 0.5, np.float32))
WIDER_ROW = packed(np.full(9, 0.5, np.float32))


def said(seq: int, text: str = "hello") -> Message:
    return Message(seq, (seq + 1) // 2, "user" if seq % 2 else "assistant", text, 0.0)


def columns(seq: int, text: str) -> dict[bytes, bytes]:
    role = b"user" if seq % 2 else b"assistant"
    rest = {b"x": b"1", b"s": b"0", b"i": b"0", b"n": b"", b"m": b"", b"k": b"1"}
    return {b"r": role, b"t": text.encode(), **rest}


def loaded(
    first: int, last: int, fingerprint: str = "words", text: str = "hello", row: bytes = ROW
) -> Delta:
    """Load messages and vectors from `first` to `last`, the newest that there are."""
    seqs = range(first, last + 1)
    messages = StreamDelta(
        entries=[(seq, columns(seq, text)) for seq in seqs],
        length=last,
        fingerprint=fingerprint,
        vectors=[(seq, row) for seq in seqs],
        vectors_length=last,
    )
    return Delta(("0", "0"), 0, 0, {}, StreamDelta(), messages)


def seqs(scope_memory: ScopeMemory) -> list[int]:
    return [message.seq for message in scope_memory.messages.messages]


def state(scope_memory: ScopeMemory) -> tuple[list[int], int, bool]:
    """Return the messages, how many of them have a vector, and whether that is all."""
    stream = scope_memory.messages
    return seqs(scope_memory), len(stream.indexed(UTC).stored_from(0)), stream.is_whole


def read_before(messages: int = 4) -> ScopeMemory:
    return ScopeMemory(HERE).join(loaded(1, messages), TAIL)


@pytest.mark.parametrize("first", [5, 3], ids=["what is new", "also what was known"])
def test_what_was_loaded_joins_what_was_known_and_is_kept_once(first: int) -> None:
    assert ScopeMemory(HERE).cursor == Cursor()
    here = read_before()
    assert here.cursor == Cursor(4, 4, version=("0", "0"))
    assert state(here.join(loaded(first, 6), TAIL)) == ([1, 2, 3, 4, 5, 6], 6, True)


@pytest.mark.parametrize(
    "changed", [{"version": ("1", "0")}, {"version": ("0", "1")}, {"generation": 1_000}], ids=str
)
def test_nothing_from_before_an_erasure_or_an_expiry_is_kept(changed: dict[str, Any]) -> None:
    here = read_before().join(replace(loaded(5, 6), **changed), TAIL)
    assert seqs(here) == [5, 6]
    assert {name: getattr(here, name) for name in changed} == changed


def test_vectors_of_two_models_are_not_mixed() -> None:
    here = read_before().join(loaded(5, 6, fingerprint="another"), TAIL)
    assert state(here) == ([5, 6], 2, False)


def test_vectors_of_another_length_are_not_mixed_with_those_before() -> None:
    """A model may change behind its name."""
    here = read_before().join(loaded(5, 6), TAIL)
    here.messages.indexed(UTC)
    assert state(here.join(loaded(7, 8, row=WIDER_ROW), TAIL)) == ([7, 8], 2, False)


def test_a_full_read_may_have_left_a_gap_so_what_was_before_it_goes() -> None:
    here = read_before().join(loaded(5, 4 + TAIL), TAIL)
    assert (seqs(here), here.messages.is_whole) == (list(range(5, 5 + TAIL)), False)


def test_a_conversation_of_which_only_the_end_was_read_is_not_whole() -> None:
    here = ScopeMemory(HERE).join(loaded(91, 100), TAIL)
    assert not here.messages.is_whole
    assert not here.join(loaded(101, 102), TAIL).messages.is_whole


def test_messages_stay_if_only_the_vectors_of_records_are_of_another_model() -> None:
    kind, content = written(Fact(0, "sails", (), 0))
    entry = (1, {b"k": kind.encode(), b"j": content})
    records = StreamDelta([entry], 1, "words", [(1, ROW)], 1)
    here = read_before().join(replace(loaded(5, 6), records=records), TAIL)
    other = replace(records, fingerprint="another")
    joined = here.join(replace(loaded(7, 8), records=other), TAIL)
    assert joined is not here
    assert seqs(joined) == [1, 2, 3, 4, 5, 6, 7, 8]
    assert [fact.text for fact in joined.facts] == ["sails"]


def kept(cache: Scopes, scope: Scope, text: str = "hello") -> None:
    cache.keep((cache.held.get(scope) or ScopeMemory(scope)).join(loaded(1, 2, text=text), TAIL))


def test_what_was_not_used_for_longest_leaves_if_there_are_too_many_bytes(memory: Memory) -> None:
    cache = Scopes(memory.store, QuestionVectors(None), max_bytes=50_000)
    chats = [Scope.of_chat(number) for number in range(1, 5)]
    for chat in chats[:3]:
        kept(cache, chat, "x" * 7_000)
    kept(cache, chats[0])
    kept(cache, chats[3], "x" * 7_000)
    assert [chat in cache.held for chat in chats] == [True, False, True, True]


async def test_what_was_dropped_makes_room_and_one_large_scope_is_kept(memory: Memory) -> None:
    other = Scope.of_chat(8)
    cache = Scopes(memory.store, QuestionVectors(None), max_bytes=20_000)
    for _ in range(5):
        kept(cache, HERE, "x" * 5_000)
        cache.drop(HERE)
    for each in (HERE, other):
        kept(cache, each)
    assert {*cache.held} == {HERE, other}
    cache = Scopes(memory.store, QuestionVectors(None), max_bytes=0)
    for each in (other, HERE):
        kept(cache, each)
    assert {*cache.held} == {HERE}


def test_text_is_counted_in_the_bytes_that_it_takes() -> None:
    latin, persian = MessageStream(), MessageStream()
    latin.append([said(1, "a" * 10_000)])
    persian.append([said(1, "\u0633" * 10_000)])
    assert 10_000 < latin.nbytes < 11_000
    assert 20_000 < persian.nbytes < 21_000
