"""When a behavior learns, and from which messages. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from memory.behaviors.learning_behavior import Batch, LearningBehavior, Unlearned
from memory.learning.progress import Progress
from memory.message import Message
from memory.scopes.fields import Digest
from memory.search.message_search import SESSION_PAUSE_S

Backlog = Mapping[LearningBehavior, Unlearned]
"""What each behavior has not learned yet."""

_MAX_BATCH_TOKENS = 4_000
"""Tokens of messages in one model call; a longer backlog takes several calls."""


def due(progress: Progress, waiting: Backlog) -> list[LearningBehavior]:
    """Return the behaviors that learn now; if one is due, also those that join its model call."""
    if all(due_in(progress, *each) > 0 for each in waiting.items()):
        return []
    shared = {each: replace(unlearned, is_shared=True) for each, unlearned in waiting.items()}
    return [each for each, unlearned in shared.items() if due_in(progress, each, unlearned) <= 0]


def due_in(progress: Progress, behavior: LearningBehavior, unlearned: Unlearned) -> float:
    """Return in how many seconds a behavior is due; at most 0 for now, infinity for never."""
    pause_s = progress.failures(behavior).again_at - progress.now
    return max(pause_s, 0.0 if behavior.is_due(unlearned) else behavior.due_in(unlearned))


def batch_of(
    progress: Progress, behavior: LearningBehavior, unlearned: Unlearned, max_exchanges: float
) -> Batch:
    """Return the next batch of a behavior: whole exchanges, at least one."""
    selected = behavior.select_messages(unlearned)
    return Batch(
        conversation=progress.conversation,
        messages=_first_exchanges(selected, _MAX_BATCH_TOKENS, max_exchanges),
        digests={digest.seq: digest.text for digest in progress.here.all(Digest)},
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
