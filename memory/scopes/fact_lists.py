"""Facts by date: all of a kind or of a time, and what later ones say about earlier messages. Pure.

A message of which a fact was learned is marked once that fact has ended. No model is asked for it.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date, datetime, tzinfo
from itertools import compress, zip_longest

from memory.scopes.entries import Again, Ended, Fact, ScopeEntry
from memory.scopes.scope_memory import ScopeMemory
from memory.search.message_search import Later, SearchResult
from memory.search.words import FUNCTION_WORDS, terms_of, words_of
from memory.store.keys import Scope
from memory.store.tasks import in_turns
from memory.text.message_lines import calendar_day, days_of, written_day
from memory.text.untrusted_text import escaped, one_line

_ENGLISH = {"latin": "en"}
"""Kinds are compared by their stems; words of other languages are folded the same way."""

_MIN_LETTERS = 5  # forms of one word of so many letters share all but the last of the shorter one

_MAX_TIMES = 6


async def of_kind(facts: Sequence[Fact], kind: str) -> list[Fact]:
    """Return the facts of a kind by its name, and those that have its words; "" stands for all.

    Other turns go on meanwhile: to read the words of ten thousand facts takes 100 ms.
    """
    asked = set(terms_of(words_of(kind), _ENGLISH))
    texts = (f"{fact.kind} {fact.text}" for fact in facts)
    are_alike = (not asked or asked <= {*terms_of(words_of(text), _ENGLISH)} for text in texts)
    return list(compress(facts, await in_turns(are_alike)))


def named_kinds(question: str, facts: Iterable[Fact]) -> set[str]:
    """Return the kinds of these facts that a question names, in any form of the word."""
    words = [word for word in words_of(question) if word not in FUNCTION_WORDS["en"]]
    kinds = {fact.kind for fact in facts if fact.kind}
    return {kind for kind in kinds if any(_is_same_word(kind, word) for word in words)}


def of_time(
    facts: Iterable[Fact], zone: tzinfo, since: date | None = None, until: date | None = None
) -> list[Fact]:
    """Return the facts of these days in the order of what they tell about, then of their saying.

    None stands for an open end.
    """
    first_day, last_day = since or date.min, until or date.max
    days = [(*period(fact, zone), fact) for fact in facts]
    found = [(begin, f) for begin, end, f in days if begin <= last_day and end >= first_day]
    return [fact for _, fact in sorted(found, key=lambda each: (each[0], each[1].said_at))]


def period(fact: Fact, zone: tzinfo) -> tuple[date, date]:
    """Return the first and the last day of what a fact tells about, or the day it was said."""
    said = datetime.fromtimestamp(fact.said_at, zone).date()
    begin, end = days_of(fact.from_day), days_of(fact.to_day)
    if begin is None:
        return (min(said, end[1]), end[1]) if end else (said, said)
    return begin[0], max(begin[1], end[1] if end else begin[1])


def when_of(fact: Fact) -> str:
    """Return when a fact happens or holds, "" if no day is known."""
    begin, end = (written_day(each) if each else "" for each in (fact.from_day, fact.to_day))
    if begin and end:
        return f"{begin} to {end}"
    return begin or (f"until {end}" if end else "")


def listed(fact: Fact, zone: tzinfo) -> str:
    """Return a line: id, when it holds or when it was said, when it ended, and its text."""
    said = [fact.said_at, *(source.at for source in fact.sources[1:] if source.at)]
    days = dict.fromkeys(_written(at, zone) for at in sorted(said))
    when = when_of(fact) or ", ".join([*days][-_MAX_TIMES:])
    ended = f", until {_written(fact.ended_at, zone)}" if fact.ended_at else ""
    return f"#{fact.id} [{when}{ended}] {escaped(one_line(fact.text))}"


def _written(at: float, zone: tzinfo) -> str:
    return calendar_day(datetime.fromtimestamp(at, zone).date())


def _is_same_word(one: str, other: str) -> bool:
    shorter, longer = sorted((one, other), key=len)
    length = len(shorter) - (len(shorter) >= _MIN_LETTERS)
    return longer.startswith(shorter[:length]) and len(longer) - len(shorter) <= _MIN_LETTERS // 2


def with_facts(
    found: Iterable[SearchResult], facts: ScopeMemory, here: ScopeMemory
) -> list[SearchResult]:
    """Return results that know which facts rest on their messages, and which of these have ended.

    `facts` is the scope of `Scope.facts_scope`, `here` the conversation.
    """
    by_id = {fact.id: fact for fact in known_facts(facts, here)}
    resting: dict[int, list[Fact]] = {}
    for fact in by_id.values():
        for seq in here.seqs_of(fact.sources):
            resting.setdefault(seq, []).append(fact)
    results = []
    for result in found:
        own = {each.seq: resting[each.seq] for each in result.messages if each.seq in resting}
        ended = {seq: [fact for fact in each if not fact.is_current] for seq, each in own.items()}
        later = {
            seq: tuple(_later(fact, by_id) for fact in each) for seq, each in ended.items() if each
        }
        # A message that also says something outdated is shown with its mark.
        repeated_by = {
            seq: tuple(fact.id for fact in each) for seq, each in own.items() if seq not in later
        }
        results.append(replace(result, later=later, repeated_by=repeated_by) if own else result)
    return results


def _later(fact: Fact, by_id: dict[int, Fact]) -> Later:
    seen, last = {fact.id}, fact
    while last.replaced_by in by_id and last.replaced_by not in seen:
        last = by_id[last.replaced_by]
        seen.add(last.id)
    return Later(fact.ended_at, "" if last is fact else last.text, 0 if last is fact else last.id)


def fact_scopes(facts: ScopeMemory, here: ScopeMemory) -> list[ScopeMemory]:
    """Return the scopes whose facts count in a conversation, the topic's own one last.

    `facts` is the scope of `Scope.facts_scope`, `here` the conversation. In groups both are one.
    """
    return [facts] if facts.scope == here.scope else [facts, here]


def known_facts(facts: ScopeMemory, here: ScopeMemory) -> list[Fact]:
    """Return all facts that count in a conversation, also ended ones, with their shown ids."""
    read = fact_scopes(facts, here)
    return [with_shown_id(each.scope, fact) for each in read for fact in each.facts]


def with_shown_id(scope: Scope, fact: Fact) -> Fact:
    """Return a fact of a scope with its shown id."""
    if not scope.is_private:
        return fact
    return replace(fact, id=-fact.id, replaced_by=-fact.replaced_by)


def place_of(conversation: Scope, fact_id: int) -> tuple[Scope, int]:
    """Return the scope of a fact and its stored id; `fact_id` is its shown id."""
    if fact_id < 0 and conversation.is_private:
        return conversation, -fact_id
    return conversation.facts_scope, fact_id


def split_by_place(entries: Sequence[ScopeEntry]) -> tuple[list[ScopeEntry], list[ScopeEntry]]:
    """Return what to write to the scope of facts, and what to the topic, with stored ids.

    A fact that replaces a fact of the topic goes there, too.
    """
    general: list[ScopeEntry] = []
    topic: list[ScopeEntry] = []
    for entry, following in zip_longest(entries, entries[1:]):
        amends = following if isinstance(entry, Fact) and isinstance(following, Ended) else entry
        if not isinstance(amends, Again | Ended) or amends.fact_id > 0:
            general.append(entry)
        elif isinstance(entry, Again | Ended):
            topic.append(replace(entry, fact_id=-entry.fact_id))
        else:
            topic.append(entry)
    return general, topic
