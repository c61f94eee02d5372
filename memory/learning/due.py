"""Who is due to learn, when, and from which messages. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf

from memory.behaviors.learning_behavior import Batch, LearningBehavior, Unlearned
from memory.learning.progress import Ledger
from memory.message import Message

Waiting = Mapping[LearningBehavior, Unlearned]
"""What each behavior has not learned yet."""

_BATCH_TOKENS = 4_000
"""What one internal call reads at most; a long backlog is learned in several."""


def due(ledger: Ledger, waiting: Waiting) -> list[LearningBehavior]:
    """Return who learns now: where somebody is due, also those who join a call made anyway."""
    if not _due(ledger, waiting):
        return []
    shared = {each: replace(unlearned, is_shared=True) for each, unlearned in waiting.items()}
    return _due(ledger, shared)


def due_in(ledger: Ledger, waiting: Waiting) -> float:
    """Return in how many seconds somebody will be due; infinity for nobody."""
    return min((_due_in(ledger, *each) for each in waiting.items()), default=inf)


def batch_of(
    ledger: Ledger, behavior: LearningBehavior, unlearned: Unlearned, max_exchanges: float
) -> Batch:
    """Return what a behavior learns from now: whole exchanges, at least one."""
    messages = _within(behavior.select_messages(unlearned), _BATCH_TOKENS, max_exchanges)
    return Batch(
        conversation=ledger.conversation,
        messages=messages,
        digests=ledger.digests,
        here=ledger.here,
        facts=ledger.facts,
        now=ledger.now,
    )


def _due(ledger: Ledger, waiting: Waiting) -> list[LearningBehavior]:
    return [each for each, unlearned in waiting.items() if _due_in(ledger, each, unlearned) <= 0]


def _due_in(ledger: Ledger, behavior: LearningBehavior, unlearned: Unlearned) -> float:
    """Return in how many seconds a behavior wants to learn; 0 for now."""
    pause_s = ledger.failures(behavior).again_at - ledger.now
    return max(pause_s, 0.0 if behavior.is_due(unlearned) else behavior.due_in(unlearned))


def _within(
    messages: Sequence[Message], max_tokens: int, max_exchanges: float
) -> Sequence[Message]:
    """Return whole exchanges from the first on; one is taken however long it is."""
    taken = tokens = exchanges = 0
    for at, message in enumerate(messages):
        tokens += message.tokens
        if taken and (tokens > max_tokens or exchanges >= max_exchanges):
            break
        if at + 1 == len(messages) or messages[at + 1].exchange != message.exchange:
            taken = at + 1
            exchanges += 1
    return messages[:taken]
