"""Shares the memory section out among what behaviors tell and the recalled messages.

All offer whole lines. What must not be missing comes first. Then one fill takes the line that is
worth most for its tokens, whatever it is: what one kind leaves, the others get.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from memory.behaviors.chat_instructions import HEADING as INSTRUCTIONS
from memory.behaviors.user_facts import ALWAYS
from memory.search.words import asked_terms, words_of
from memory.text.tokens import TokenCounter

_FIRST = (INSTRUCTIONS, ALWAYS)
"""Everything under these headings is told before anything else; so is the running state."""

_MAX_SHARE = 2
"""One entry gets at most this part of the tokens: the state and a narrative may be longer."""

_LEARNED = 2
"""What behaviors tell is worth so many times a recalled message: it sums up many of them."""

_LONG_TOKENS = 250
"""Only the state and texts of more tokens are shortened, and not to less than these:"""

_MIN_LEFT = 60


@dataclass(frozen=True, slots=True)
class Offer:
    """What behaviors tell, the lines that they noted, and recalled lines, both best first."""

    told: str
    noted: Sequence[str]
    recalled: Mapping[int, str]


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line with its indented lines, and the heading that it stands under ("" for none).

    `at`: its place in the text. A recalled message has its sequence, `seq`, and no heading.
    """

    at: int
    heading: str
    text: str
    seq: int = 0

    @property
    def is_state(self) -> bool:
        """Whether it is the JSON of the running state."""
        return self.text.startswith("{")


def told_within(
    counter: TokenCounter, offer: Offer, query: str, limit: int
) -> tuple[str, dict[int, str]]:
    """Return what is told and the recalled lines by sequence, together at most `limit` tokens.

    Both keep their order; recalled lines are in the order of time. Instructions, pinned facts and
    the state are taken first. A state that is too long loses the ends of its longest values and
    stays JSON. Any other entry is worth more if it shares words with the query, if its rank among
    those of its kind is better, and if it is short. Entries that were noted first rank first. Only
    a long text, such as a narrative, is shortened. A heading stands only over entries.
    """
    entries = [*_entries(offer.told)]
    first = [each for each in entries if each.is_state or each.heading in _FIRST]
    first.sort(key=lambda each: each.is_state)
    messages = [_Entry(0, "", line, seq) for seq, line in offer.recalled.items()]
    kinds = [messages, *_by_heading([each for each in entries if each not in first])]
    all_tokens = counter.count("\n".join((offer.told, *offer.recalled.values())))
    least, unclaimed = limit // _MAX_SHARE, limit - all_tokens
    ranked = _ranked(counter, kinds, query, offer.noted, least)
    taken: list[_Entry] = []
    for entry in (*first, *ranked):
        is_first = bool(entry.heading) and all(each.heading != entry.heading for each in taken)
        heading = f"{entry.heading}\n" if is_first else ""
        room = limit - counter.count(heading) - 1
        text = entry.text
        most = max(least, unclaimed + counter.count(text))
        if counter.count(text) > min(most, room):
            text = _shortened(counter, entry, min(most, room))
        cost = counter.count(f"{heading}{text}\n")
        if text and cost <= limit:
            limit -= cost
            taken.append(replace(entry, text=text))
    told = sorted((each for each in taken if not each.seq), key=lambda each: each.at)
    recalled = {each.seq: each.text for each in taken if each.seq}
    return "\n".join(_with_headings(told)), dict(sorted(recalled.items()))


def _ranked(
    counter: TokenCounter,
    kinds: Iterable[Sequence[_Entry]],
    query: str,
    noted: Sequence[str],
    most: int,
) -> list[_Entry]:
    """Return the entries of all kinds, those first that are worth most for their tokens.

    A recalled message keeps its rank; the words that an entry shares with the query count for all.
    """
    asked = _terms(query)
    places = {line: place for place, line in enumerate(noted)}
    costs: list[tuple[float, _Entry]] = []
    for kind in kinds:
        shared = {each: len(asked & _terms(each.text)) for each in kind}
        known = {each: places.get(each.text, len(places)) for each in kind}
        is_recalled = any(each.seq for each in kind)
        best = kind if is_recalled else sorted(kind, key=lambda e: (-shared[e], known[e]))
        weight = 1 if is_recalled else _LEARNED
        costs += [
            (
                (rank + 1)
                * min(most, counter.count(each.text))
                / weight
                / (1 + bool(shared[each])),
                each,
            )
            for rank, each in enumerate(best)
        ]
    return [each for _, each in sorted(costs, key=lambda pair: pair[0])]


def _by_heading(entries: Iterable[_Entry]) -> Iterable[list[_Entry]]:
    kinds: dict[str, list[_Entry]] = {}
    for entry in entries:
        kinds.setdefault(entry.heading, []).append(entry)
    return kinds.values()


def _terms(text: str) -> set[str]:
    return {form for forms in asked_terms(words_of(text), {}) for form in forms}


def _shortened(counter: TokenCounter, entry: _Entry, limit: int) -> str:
    """Return the text, shortened if it is the state or a long one."""
    if entry.heading in _FIRST or limit < _MIN_LEFT:
        return entry.text
    if entry.is_state:
        return _shorter_state(counter, entry.text, limit)
    is_long = counter.count(entry.text) > _LONG_TOKENS
    return counter.shorten(entry.text, limit) if is_long else entry.text


def _shorter_state(counter: TokenCounter, text: str, limit: int) -> str:
    """Halve the longest value of the JSON again and again, until the text fits into the limit."""
    state, end = json.JSONDecoder().raw_decode(text)
    rest = text[end:]
    while counter.count(text) > limit and any(state.values()):
        name = max(state, key=lambda each: len(json.dumps(state[each])))
        match state[name]:
            case [str(only)]:
                state[name] = [only[: len(only) // 2]] if only else []
            case str() | list() as value:
                state[name] = value[: len(value) // 2]
            case _:
                state[name] = None
        text = json.dumps(state, ensure_ascii=False) + rest
    return text


def _entries(told: str) -> Iterator[_Entry]:
    heading, lines = "", list[str]()
    for at, line in enumerate(told.splitlines()):
        if line.startswith("  ") and lines:
            lines.append(line)
            continue
        if lines:
            yield _Entry(at, heading, "\n".join(lines))
            lines = []
        if line.endswith(":") and not line.startswith(("[", "#", "{")):
            heading = line
        else:
            lines = [line]
    if lines:
        yield _Entry(len(told), heading, "\n".join(lines))


def _with_headings(entries: Iterable[_Entry]) -> Iterator[str]:
    before = ""
    for entry in entries:
        if entry.heading and entry.heading != before:
            yield entry.heading
        before = entry.heading
        yield entry.text
