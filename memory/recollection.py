"""What a search over a conversation brings back.

Values only; finding them is `history`'s business, showing them the prompt's.
"""

from dataclasses import dataclass

from memory.messages import Message


@dataclass(frozen=True, slots=True)
class Recollection:
    """One recalled exchange: the message that was hit, with its question or answer, oldest first.

    `seq` is the hit's, one of `messages`; `score` orders recollections, higher is nearer.
    """

    messages: tuple[Message, ...]
    score: float
    seq: int
