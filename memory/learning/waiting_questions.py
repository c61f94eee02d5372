"""The questions that wait for a person's answer: how they are made, and when they expire.

Nothing is read or written here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import zip_longest
from math import inf
from secrets import token_urlsafe

from memory.scopes.entries import THE_ONE_BEFORE, Ended, Fact, ScopeEntry
from memory.scopes.fields import QUESTION_WAITS_S, UNASKED, Question
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.sources import Source
from memory.scopes.writes import Remember, StillTrue, ToolWrite

_CARD_WAITS_S = 86_400
_MAX_CARDS = 20
"""Cards that one conversation stores at once. While so many wait, learned facts are dropped."""


def questions(here: ScopeMemory, write: ToolWrite, seq: int, now: float) -> list[Question]:
    """Return the field in which a write waits for an answer; it rests on the message `seq`.

    A `Remember` without a text names a card that was just shown. If that card is gone, the list is
    empty.
    """
    if isinstance(write, StillTrue):
        return [Question(write.nonce, seq, _asked_at(now + _CARD_WAITS_S), "", write)]
    if not isinstance(write, Remember) or write.text:
        return [Question(write.nonce, seq, now, "", write)]
    card = here.get(Question, write.nonce)
    return [replace(card, answer="")] if card and card.answer == UNASKED else []


def new_cards(entries: Sequence[ScopeEntry], here: ScopeMemory, now: float) -> list[Question]:
    """Return a question for each new fact in `entries`, to be asked with a later answer.

    It expires after a day. A fact that is asked about already gets no second question.
    """
    waiting = [each for each in here.all(Question) if each.answer in ("", UNASKED)]
    asked = {each.write.text for each in waiting if isinstance(each.write, Remember)}
    cards: list[Question] = []
    for fact, following in zip_longest(entries, entries[1:]):
        if not isinstance(fact, Fact) or fact.text in asked:
            continue
        ended = following.fact_id if isinstance(following, Ended) else 0
        source = fact.sources[0]
        write = Remember(
            fact.text,
            ended,
            asks_first=True,
            sender_id=source.sender_id,
            changes=fact.changes,
            is_pinned=fact.is_pinned,
            kind=fact.kind,
            from_day=fact.from_day,
            to_day=fact.to_day,
        )
        # One second between two cards keeps them in order.
        asked_at = _asked_at(now + _CARD_WAITS_S) + len(cards)
        cards.append(Question(token_urlsafe(12), source.seq, asked_at, UNASKED, write))
    return cards[: max(0, _MAX_CARDS - len(waiting))]


def _asked_at(expires_at: float) -> float:
    return expires_at - QUESTION_WAITS_S


def expired(here: ScopeMemory, now: float) -> list[str]:
    """Return the names of the questions that nobody answered in time; they are to be removed."""
    return [each.name for each in here.all(Question) if each.expires_at <= now]


def expire_in(here: ScopeMemory, now: float) -> float:
    """Return the seconds until the next question expires; infinity if there is none."""
    return min((each.expires_at - now for each in here.all(Question)), default=inf)


def remembered(
    write: Remember, source: Source, known: Iterable[Fact], now: float
) -> list[ScopeEntry]:
    """Return the entries that store a statement and end the fact that it replaces, by shown ids.

    The new fact is pinned if the replaced one is, or if it is a lasting wish.
    """
    replaced = next((fact for fact in known if fact.id == write.replaces), None)
    new = Fact(
        *(0, write.text, (source,), now),
        is_pinned=write.is_pinned,
        changes=write.changes,
        kind=write.kind,
        from_day=write.from_day,
        to_day=write.to_day,
    )
    if replaced is None:
        return [new]
    return [new.in_place_of(replaced), Ended(write.replaces, now, THE_ONE_BEFORE)]
