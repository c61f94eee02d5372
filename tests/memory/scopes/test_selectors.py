"""What of a history a window shows."""

from collections.abc import Sequence
from itertools import accumulate, groupby, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.message import Message, Role
from memory.scopes.selectors import (
    BlockWindowMessageSelector,
    MessageWindowMessageSelector,
    NoMessages,
    TokenWindowMessageSelector,
)
from memory.text.tokens import MESSAGE_OVERHEAD

PLENTY = 1_000_000


def conversation(exchanges: Sequence[tuple[int, int, int]]) -> list[Message]:
    """Make a history of (messages, tokens of each, exchange numbers skipped before) an exchange."""
    roles: tuple[Role, Role] = ("user", "assistant")
    messages: list[Message] = []
    number = 0
    for length, tokens, skipped in exchanges:
        number += 1 + skipped
        messages += [
            Message(len(messages) + at, number, role, "", 0.0, tokens=tokens)
            for at, role in enumerate(roles[:length], start=1)
        ]
    return messages


def regular(exchanges: int, tokens: int = 10) -> list[Message]:
    return conversation([(2, tokens, 0)] * exchanges)


def seqs(messages: Sequence[Message]) -> list[int]:
    return [message.seq for message in messages]


def cost(messages: Sequence[Message]) -> int:
    return sum(message.tokens + MESSAGE_OVERHEAD for message in messages)


def longest_fitting(
    messages: Sequence[Message], max_messages: int, max_tokens: int
) -> list[Message]:
    """Say the rule in another way: the longest of all ends of whole exchanges that fits."""
    lengths = [len(list(group)) for _, group in groupby(messages, key=lambda m: m.exchange)]
    ends = [list(messages[start:]) for start in accumulate(lengths, initial=0)]
    return next(end for end in ends if len(end) <= max_messages and cost(end) <= max_tokens)


histories = st.lists(
    st.tuples(st.sampled_from([2, 2, 2, 1]), st.integers(0, 60), st.sampled_from([0, 0, 0, 1, 7])),
    max_size=60,
).map(conversation)


@given(history=histories)
def test_no_messages_shows_none(history: list[Message]) -> None:
    assert NoMessages().select(history) == ()


@given(history=histories, n=st.integers(0, 150))
def test_the_message_window_is_exactly_the_n_latest(history: list[Message], n: int) -> None:
    window = MessageWindowMessageSelector(n).select(history)
    assert list(window) == history[-n:] if n else window == ()
    assert len(window) == min(n, len(history))


@given(history=histories, limit=st.integers(0, 3000))
def test_the_token_window_is_the_longest_end_of_whole_exchanges(
    history: list[Message], limit: int
) -> None:
    window = TokenWindowMessageSelector(limit).select(history)
    assert list(window) == longest_fitting(history, len(history), limit)


def test_nothing_older_slips_in_behind_an_exchange_that_does_not_fit() -> None:
    history = conversation([(2, 1, 0), (2, 1, 0), (2, 500, 0), (2, 1, 0)])
    assert seqs(TokenWindowMessageSelector(100).select(history)) == [7, 8]


@given(
    history=histories,
    max_messages=st.integers(0, 80),
    limit=st.integers(0, 4000),
    block=st.integers(1, 20),
)
def test_the_block_window_is_an_end_of_whole_exchanges_and_at_least_half_of_what_fits(
    history: list[Message], max_messages: int, limit: int, block: int
) -> None:
    window = list(BlockWindowMessageSelector(max_messages, limit, block).select(history))
    fitting = longest_fitting(history, max_messages, limit)
    assert window == fitting[len(fitting) - len(window) :]
    assert 2 * len(window) >= len(fitting)
    if window and len(window) < len(history):
        assert window[0].exchange != history[-len(window) - 1].exchange


@given(history=histories, max_messages=st.integers(0, 15), limit=st.integers(0, 1000))
def test_a_window_of_fewer_than_16_messages_shows_all_that_fits(
    history: list[Message], max_messages: int, limit: int
) -> None:
    window = BlockWindowMessageSelector.in_quarters(max_messages, limit).select(history)
    assert list(window) == longest_fitting(history, max_messages, limit)


@pytest.mark.parametrize(("n", "block"), [(1, 2), (10, 2), (16, 4), (20, 4), (30, 6), (40, 10)])
def test_a_block_is_a_quarter_in_whole_exchanges(n: int, block: int) -> None:
    assert BlockWindowMessageSelector.in_quarters(n, PLENTY).block == block


@pytest.mark.parametrize("n", [8, 10, 16, 20, 31, 40, 64, 100])
def test_over_500_turns_the_front_moves_by_whole_blocks(n: int) -> None:
    selector = BlockWindowMessageSelector.in_quarters(n, PLENTY)
    history = regular(500)
    moves = [0]
    front = 1
    for turn in range(1, 501):
        window = selector.select(history[: 2 * turn])
        if 2 * turn > n:
            assert n - selector.block < len(window) <= n
        if window[0].seq != front:
            assert window[0].seq - front == selector.block
            front = window[0].seq
            moves.append(turn)
    assert len(moves) > 2
    assert all(b - a >= selector.block // 2 for a, b in pairwise(moves[1:]))


@given(
    exchanges=st.lists(
        st.tuples(st.sampled_from([2, 2, 1]), st.just(5), st.sampled_from([0, 0, 1, 9])),
        min_size=40,
        max_size=120,
    ),
    n=st.sampled_from([16, 24, 40]),
)
def test_gaps_and_lone_questions_do_not_make_the_front_restless(
    exchanges: list[tuple[int, int, int]], n: int
) -> None:
    selector = BlockWindowMessageSelector.in_quarters(n, PLENTY)
    history = conversation(exchanges)
    ends = accumulate(length for length, _, _ in exchanges)
    fronts = [selector.select(history[:end])[0].seq for end in ends]
    assert fronts == sorted(fronts)
    # A lone question may shift a block's first exchange by one message, hence the one.
    steps = [b - a for a, b in pairwise(fronts) if a != b]
    assert all(step >= selector.block - 1 for step in steps)


@given(history=histories, n=st.sampled_from([16, 40]), limit=st.integers(100, 3000))
def test_the_window_does_not_depend_on_how_much_older_history_was_read(
    history: list[Message], n: int, limit: int
) -> None:
    selector = BlockWindowMessageSelector.in_quarters(n, limit)
    assert selector.select(history[-n - 2 :]) == selector.select(history)
