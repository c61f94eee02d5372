"""Which part of a conversation goes into the prompt: the window.

A selector gets the history without the words to answer, oldest message first, and returns one
contiguous end of it. It reads nothing and changes nothing; messages carry their token counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Protocol, Self

from memory.message import Message
from memory.text.tokens import MESSAGE_OVERHEAD

_EXCHANGE = 2  # messages of an exchange: a question and its answer


class MessageSelector(Protocol):
    """Chooses what of a history is shown again."""

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return a contiguous end of `messages`, in their order."""
        ...


@dataclass(frozen=True, slots=True)
class NoMessages:
    """Shows nothing, so that only recall remembers."""

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:  # noqa: ARG002 - protocol
        """Return nothing."""
        return ()


@dataclass(frozen=True, slots=True)
class MessageWindowMessageSelector:
    """Shows exactly the `n` most recent messages, or all when there are fewer."""

    n: int

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the last `n` messages."""
        return tuple(messages[max(0, len(messages) - self.n) :])


@dataclass(frozen=True, slots=True)
class TokenWindowMessageSelector:
    """Shows the newest whole exchanges that fit in `max_tokens`.

    It stops at the first exchange that does not fit, so that nothing older slips in behind a gap.
    """

    max_tokens: int
    overhead_per_message: int = MESSAGE_OVERHEAD

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the longest end of whole exchanges within the limit."""
        tokens = 0
        fitting = len(messages)
        for start in reversed(_exchange_starts(messages)):
            exchange = messages[start:fitting]
            tokens += sum(message.tokens + self.overhead_per_message for message in exchange)
            if tokens > self.max_tokens:
                break
            fitting = start
        return tuple(messages[fitting:])


@dataclass(frozen=True, slots=True)
class BlockWindowMessageSelector:
    """Shows the newest whole exchanges within both limits, moving its front in blocks of messages.

    A front that stays where it is keeps the prompt's beginning byte-identical for many turns, which
    servers reward by reusing their work. Blocks are counted by `seq`: a message keeps its own for
    good, and it grows by one a message whatever commands and failed turns do to the exchange
    numbers. So an exchange that begins a block does so however much is said after it.

    The history may be cut off at its old end if it still holds more than `max_messages`.
    """

    max_messages: int
    max_tokens: int
    block: int
    overhead_per_message: int = MESSAGE_OVERHEAD

    @classmethod
    def in_quarters(cls, max_messages: int, max_tokens: int) -> Self:
        """Make blocks of a quarter of the window, in whole exchanges and at least one.

        A window of fewer than 16 messages so moves by single exchanges: it shows all it may.
        """
        exchanges = max(1, max_messages // 4 // _EXCHANGE)
        return cls(max_messages, max_tokens, exchanges * _EXCHANGE)

    def select(self, messages: Sequence[Message]) -> tuple[Message, ...]:
        """Return the longest end within the limits that begins with the first exchange of a block.

        Of a long history of two-message exchanges with room in tokens, these are more than
        `max_messages - block`. Where less than half of what fits would be left (a few long
        exchanges fill the limits), all that fits is returned.
        """
        starts = _exchange_starts(messages)
        fitting = self._fitting(messages, starts)
        dropped = len(messages) - len(fitting)
        if not dropped or self.block <= _EXCHANGE:
            return fitting
        for before, start in pairwise(starts):
            if start >= dropped and self._number(messages[before]) != self._number(messages[start]):
                whole_blocks = tuple(messages[start:])
                return whole_blocks if 2 * len(whole_blocks) >= len(fitting) else fitting
        return fitting

    def _fitting(self, messages: Sequence[Message], starts: Sequence[int]) -> tuple[Message, ...]:
        few = (start for start in starts if len(messages) - start <= self.max_messages)
        tokens = TokenWindowMessageSelector(self.max_tokens, self.overhead_per_message)
        return tokens.select(messages[next(few, len(messages)) :])

    def _number(self, message: Message) -> int:
        """Return the number of the block in which `message` stands."""
        return (message.seq - 1) // self.block


def _exchange_starts(messages: Sequence[Message]) -> list[int]:
    return [
        index
        for index, message in enumerate(messages)
        if index == 0 or message.exchange != messages[index - 1].exchange
    ]
