"""Facts that age: a person is asked now and then whether an address, a job or a plan still holds.

The question stands below an answer that has to do with the fact, in private chats only.
"""

from collections.abc import Collection, Iterable
from secrets import token_urlsafe

from memory.behaviors.statements import stems
from memory.scopes.entries import Fact
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.writes import StillTrue, ToolWrite

_DAY_S = 86_400
_OLD_S = 180 * _DAY_S
_AGAIN_S = 30 * _DAY_S
"""After this time a question that nobody answered may be asked once more."""
_NONCE_BYTES = 12


def is_on_its_way(here: ScopeMemory) -> bool:
    """Return whether such a question was sent in this conversation and is not stored yet."""
    return any(isinstance(write, StillTrue) for write in here.waiting_writes)


def to_confirm(facts: ScopeMemory, sender_id: int, now: float) -> list[StillTrue]:
    """Return a question for each fact that has aged, oldest first; none within a day of another."""
    if any(fact.asked_at > now - _DAY_S for fact in facts.facts):
        return []
    aged = [fact for fact in facts.facts if _has_aged(fact, now)]
    return [
        StillTrue(
            fact.id, sender_id=sender_id, nonce=token_urlsafe(_NONCE_BYTES), old_text=fact.text
        )
        for fact in sorted(aged, key=_known_since)
    ]


def question_for(writes: Iterable[ToolWrite], used: Collection[str], said: str) -> list[StillTrue]:
    """Return at most one of the questions: about a fact that stood in the prompt.

    `used` has the codes of what stood there (`CallContext.used`). `said` is the message with its
    answer, which has a word of the fact. Few facts are all shown, so being shown is not enough.
    """
    words = stems(said)
    asked = [
        write
        for write in writes
        if isinstance(write, StillTrue)
        and f"f{write.record_id}" in used
        and not words.isdisjoint(stems(write.old_text))
    ]
    return asked[:1]


def _has_aged(fact: Fact, now: float) -> bool:
    is_old = _known_since(fact) < now - _OLD_S
    return fact.is_current and fact.changes and is_old and fact.asked_at < now - _AGAIN_S


def _known_since(fact: Fact) -> float:
    return max(fact.said_at, fact.confirmed_at)
