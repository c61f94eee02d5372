"""When a behavior learns and from which messages, and how long to wait after a failure. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf
from typing import Literal

from memory.behaviors.learning_behavior import Batch, LearningBehavior, Unlearned
from memory.learning.progress import Progress
from memory.message import Message
from memory.scopes.fields import LearningPause
from memory.scopes.scope_memory import ScopeMemory
from memory.search.message_search import SESSION_PAUSE_S

Backlog = Mapping[LearningBehavior, Unlearned]
"""What each behavior has not learned yet."""

_MAX_BATCH_TOKENS = 4_000
"""Tokens of messages in one model call; a longer backlog takes several calls."""

_FIRST_PAUSE_S = 60
_MAX_PAUSE_S = 86_400

PausedTask = Literal["batches", "vectors"]
"""What pauses: model calls for behaviors, or embedding. The words are stored."""


def due(progress: Progress, waiting: Backlog) -> list[LearningBehavior]:
    """Return the behaviors that learn now; if one is due, also those that join its model call."""
    if not _due(progress, waiting):
        return []
    shared = {each: replace(unlearned, is_shared=True) for each, unlearned in waiting.items()}
    return _due(progress, shared)


def due_in(progress: Progress, waiting: Backlog) -> float:
    """Return in how many seconds the first behavior is due; infinity for never."""
    return min((_due_in(progress, *each) for each in waiting.items()), default=inf)


def batch_of(
    progress: Progress, behavior: LearningBehavior, unlearned: Unlearned, max_exchanges: float
) -> Batch:
    """Return the next batch of a behavior: whole exchanges, at least one."""
    selected = behavior.select_messages(unlearned)
    return Batch(
        conversation=progress.conversation,
        messages=_first_exchanges(selected, _MAX_BATCH_TOKENS, max_exchanges),
        digests=progress.digests,
        here=progress.here,
        facts=progress.facts,
        now=progress.now,
        refusal=progress.failures(behavior).told,
        state=progress.state(behavior).text,
    )


def first_session(messages: Sequence[Message], new_after: int, now: float) -> int:
    """Return how many of the messages form a first session that has ended; 0 if it goes on.

    A session ends by a pause, or by `/new` after the message of sequence `new_after`.
    """
    for at, (before, after) in enumerate(pairwise(messages), start=1):
        if after.sent_at - before.sent_at > SESSION_PAUSE_S or before.seq == new_after:
            return at
    last = messages[-1]
    has_ended = last.seq <= new_after or now - last.sent_at > SESSION_PAUSE_S
    return len(messages) if has_ended else 0


@dataclass(frozen=True, slots=True)
class LearningBackoff:
    """How long a conversation waits after failures of one task with one model: a minute to a day.

    It is stored in the scope, so a restart does not end it. A success removes it, and failures of
    another model do not count. `is_stored`: the scope holds a field of the task, of any model.
    """

    field: LearningPause
    is_stored: bool

    @classmethod
    def read(cls, here: ScopeMemory, task: PausedTask, model: str) -> "LearningBackoff":
        """Read the field of a conversation; without failures of this model the wait is over."""
        stored = here.get(LearningPause, task)
        if stored is None or stored.model != model:
            return cls(LearningPause(task, model=model), stored is not None)
        return cls(stored, is_stored=True)

    def is_over(self, now: float) -> bool:
        """Return whether to try now."""
        return self.field.again_at <= now

    def after_failure(self, now: float) -> tuple[float, list[LearningPause]]:
        """Return how many seconds to wait now, and the field to write."""
        pause_s = float(min(_FIRST_PAUSE_S * 2**self.field.failures, _MAX_PAUSE_S))
        more = replace(self.field, failures=self.field.failures + 1, again_at=now + pause_s)
        return pause_s, [more]


def _due(progress: Progress, waiting: Backlog) -> list[LearningBehavior]:
    return [each for each, unlearned in waiting.items() if _due_in(progress, each, unlearned) <= 0]


def _due_in(progress: Progress, behavior: LearningBehavior, unlearned: Unlearned) -> float:
    """Return in how many seconds a behavior is due; at most 0 for now."""
    pause_s = progress.failures(behavior).again_at - progress.now
    return max(pause_s, 0.0 if behavior.is_due(unlearned) else behavior.due_in(unlearned))


def _first_exchanges(
    messages: Sequence[Message], max_tokens: int, max_exchanges: float
) -> Sequence[Message]:
    """Return the first whole exchanges within the limits; the first one is always taken."""
    taken = tokens = exchanges = 0
    for at, message in enumerate(messages):
        tokens += message.tokens
        if taken and (tokens > max_tokens or exchanges >= max_exchanges):
            break
        if at + 1 == len(messages) or messages[at + 1].exchange != message.exchange:
            taken = at + 1
            exchanges += 1
    return messages[:taken]
