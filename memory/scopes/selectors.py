"""Selectors choose which messages of a conversation go into the prompt: the window.

A selector gets the messages before the current one, oldest first, and returns the newest ones of
them, without a gap. It reads nothing and changes nothing. Messages have their token counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

from memory.message import Message
from memory.text.tokens import MESSAGE_OVERHEAD

_EXCHANGE = 2  # messages of an exchange: a question and its answer


class MessageSelector(Protocol):
    """Chooses which messages are shown again."""

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the newest of `messages` without a gap, in their order."""


@dataclass(frozen=True, slots=True)
class NoMessages:
    """Shows no messages, so that only search finds them."""

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:  # noqa: ARG002 - protocol
        """Return nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class MessageWindowMessageSelector:
    """Shows exactly the `n` most recent messages, or all if there are fewer."""

    n: int

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the last `n` messages."""
        return tuple(messages[max(0, len(messages) - self.n) :])


@dataclass(frozen=True, slots=True)
class TokenWindowMessageSelector:
    """Shows the newest whole exchanges that fit in `max_tokens`, without a gap."""

    max_tokens: int

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return as many of the newest whole exchanges as fit."""
        tokens = 0
        fitting = len(messages)
        for start in reversed(_exchange_starts(messages)):
            tokens += cost_of(messages[start:fitting])
            if tokens > self.max_tokens:
                break
            fitting = start
        return tuple(messages[fitting:])


@dataclass(frozen=True, slots=True)
class BlockWindowMessageSelector:
    """Shows the newest whole exchanges within both limits, and moves its start in whole blocks.

    While the start does not move, the prompt begins with the same bytes in every turn, and the
    server can use its prompt cache. Blocks are counted by `seq`, which a message never changes and
    which grows by one with each message. So the start of a block does not depend on later messages.

    The caller may leave out old messages, if more than `max_messages` remain.
    """

    max_messages: int
    max_tokens: int
    block: int

    @classmethod
    def in_quarters(cls, max_messages: int, max_tokens: int) -> Self:
        """Make blocks of a quarter of the window, in whole exchanges and at least one.

        So a window of fewer than 16 messages moves by single exchanges and shows all that fits.
        """
        exchanges = max(1, max_messages // 4 // _EXCHANGE)
        return cls(max_messages, max_tokens, exchanges * _EXCHANGE)

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the most messages within the limits that begin with the first exchange of a block.

        In a long history of two-message exchanges that are within `max_tokens`, these are more than
        `max_messages - block`. If a few long exchanges fill the limits, less than half of what fits
        could be left. Then all that fits is returned.
        """
        starts = _exchange_starts(messages)
        few = (start for start in starts if len(messages) - start <= self.max_messages)
        by_tokens = TokenWindowMessageSelector(self.max_tokens)
        fitting = by_tokens.select(messages[next(few, len(messages)) :])
        dropped = len(messages) - len(fitting)
        if not dropped or self.block <= _EXCHANGE:
            return fitting
        blocks = [(message.seq - 1) // self.block for message in messages]
        for before, start in pairwise(starts):
            if start >= dropped and blocks[before] != blocks[start]:
                whole_blocks = tuple(messages[start:])
                return whole_blocks if 2 * len(whole_blocks) >= len(fitting) else fitting
        return fitting


def cost_of(messages: Sequence[Message]) -> int:
    """Count the tokens of messages; two joined ones never cost more than two separate ones."""
    return sum(message.tokens + MESSAGE_OVERHEAD for message in messages)


def _exchange_starts(messages: Sequence[Message]) -> list[int]:
    return [
        index
        for index, message in enumerate(messages)
        if index == 0 or message.exchange != messages[index - 1].exchange
    ]
