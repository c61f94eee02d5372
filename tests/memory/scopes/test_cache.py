"""What a process knows of a conversation is joined to what is new, or dropped when in doubt."""

from dataclasses import replace

import numpy as np

from memory.message import Message
from memory.queue.open_turn import Lease
from memory.scopes.cache import ConversationCache, Warm
from memory.scopes.delta import Cursor, Loaded, Notes
from memory.scopes.log import packed
from memory.store.keys import Scope

HERE = Scope.of_chat(7)
TAIL = 10
ROOMY = 10_000_000
ROW = packed(np.full(4, 0.5, np.float32))
WIDER_ROW = packed(np.full(9, 0.5, np.float32))


def said(seq: int, text: str = "hello") -> Message:
    return Message(seq, (seq + 1) // 2, "user" if seq % 2 else "assistant", text, 0.0)


def lease(conversation: Scope = HERE, epoch: int = 0, erasure: int = 0) -> Lease:
    return Lease(conversation, "1:token", str(epoch), str(erasure))


def loaded(first: int, last: int, fingerprint: str = "words", text: str = "hello") -> Loaded:
    """Load messages and vectors from `first` to `last`, the newest that there are."""
    seqs = range(first, last + 1)
    return Loaded(
        messages=tuple(said(seq, text) for seq in seqs),
        log_length=last,
        vector_fingerprint=fingerprint,
        vectors=tuple((seq, ROW) for seq in seqs),
        vectors_length=last,
        session=0,
        notes=Notes({}, (), 0, "", (), 0),
    )


def seqs(warm: Warm) -> list[int]:
    return [message.seq for message in warm.messages]


def warmed(messages: int = 4) -> ConversationCache:
    cache = ConversationCache(ROOMY)
    cache.merge(lease(), loaded(1, messages), TAIL)
    return cache


def test_of_a_conversation_that_was_never_read_nothing_is_known() -> None:
    assert ConversationCache(ROOMY).known(HERE) == Cursor(0, 0)


def test_what_was_loaded_joins_on_to_what_was_known() -> None:
    cache = warmed()
    assert cache.known(HERE) == Cursor(4, 4)
    warm = cache.merge(lease(), loaded(5, 6), TAIL)
    assert (seqs(warm), warm.indexed().vectors, warm.is_whole) == ([1, 2, 3, 4, 5, 6], 6, True)


def test_what_is_loaded_twice_is_held_once() -> None:
    warm = warmed().merge(lease(), loaded(3, 6), TAIL)
    assert (seqs(warm), warm.indexed().vectors, warm.is_whole) == ([1, 2, 3, 4, 5, 6], 6, True)


def test_nothing_from_before_an_erasure_is_kept() -> None:
    for erased in (lease(epoch=1), lease(erasure=1)):
        warm = warmed().merge(erased, loaded(5, 6), TAIL)
        assert (seqs(warm), warm.indexed().vectors, warm.version) == ([5, 6], 2, erased.version)


def test_vectors_of_two_models_are_not_mixed() -> None:
    warm = warmed().merge(lease(), loaded(5, 6, fingerprint="another"), TAIL)
    assert (warm.indexed().vectors, warm.is_whole) == (2, False)


def test_vectors_of_another_length_are_not_mixed_with_those_held() -> None:
    """A model may change behind its name."""
    cache = warmed()
    cache.merge(lease(), loaded(5, 6), TAIL).indexed()
    wider = replace(loaded(7, 8), vectors=((7, WIDER_ROW), (8, WIDER_ROW)))
    warm = cache.merge(lease(), wider, TAIL)
    assert (warm.indexed().vectors, warm.is_whole) == (2, False)


def test_a_full_read_may_have_left_a_gap_so_what_was_before_it_goes() -> None:
    warm = warmed().merge(lease(), loaded(5, 4 + TAIL), TAIL)
    assert (seqs(warm), warm.is_whole) == (list(range(5, 5 + TAIL)), False)


def test_a_conversation_of_which_only_the_end_was_read_is_not_whole() -> None:
    cache = ConversationCache(ROOMY)
    warm = cache.merge(lease(), loaded(91, 100), TAIL)
    assert not warm.is_whole
    assert not cache.merge(lease(), loaded(101, 102), TAIL).is_whole


def test_what_was_not_used_for_longest_goes_when_the_bytes_are_used_up() -> None:
    cache = ConversationCache(50_000)
    chats = [Scope.of_chat(number) for number in range(1, 5)]
    for chat in chats[:3]:
        cache.merge(lease(chat), loaded(1, 2, text="x" * 7_000), TAIL)
    cache.merge(lease(chats[0]), loaded(3, 2), TAIL)
    cache.merge(lease(chats[3]), loaded(1, 2, text="x" * 7_000), TAIL)
    assert [cache.known(chat).seq for chat in chats] == [2, 0, 2, 2]


def test_one_conversation_is_held_however_large() -> None:
    cache = ConversationCache(0)
    cache.merge(lease(Scope.of_chat(8)), loaded(1, 2), TAIL)
    cache.merge(lease(), loaded(1, 2), TAIL)
    assert cache.known(HERE) == Cursor(2, 2)
    assert cache.known(Scope.of_chat(8)) == Cursor()


def test_what_was_dropped_makes_room() -> None:
    cache = ConversationCache(20_000)
    other = Scope.of_chat(8)
    for _ in range(5):
        cache.merge(lease(), loaded(1, 2, text="x" * 5_000), TAIL)
        cache.drop(HERE)
    cache.merge(lease(), loaded(1, 2), TAIL)
    cache.merge(lease(other), loaded(1, 2), TAIL)
    assert [cache.known(chat).seq for chat in (HERE, other)] == [2, 2]


def test_text_is_counted_in_the_bytes_that_it_takes() -> None:
    latin, persian = Warm(("0", "0")), Warm(("0", "0"))
    latin.append([said(1, "a" * 10_000)])
    persian.append([said(1, "\u0633" * 10_000)])
    assert 10_000 < latin.nbytes < 11_000
    assert 20_000 < persian.nbytes < 21_000
