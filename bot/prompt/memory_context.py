"""Chooses what stands in the memory section, from the behaviors and the recalled messages.

Both offer whole lines. Leading text, pinned facts and the running state are taken first. Then the
line with the most value for its tokens is taken, of any kind, until no further line fits. The
behaviors leave half of the room to recalled messages if these can fill it.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.prompt.recalled import RecalledLine, with_dates
from memory.behaviors.running_state import HEADING as STATE
from memory.behaviors.user_facts import ALWAYS
from memory.search.words import content_forms
from memory.text.tokens import TokenCounter

_PARTS = 2
"""A state or a long text gets the limit divided by this, or more if there is room for all."""

_LEARNED = 2
"""An entry of a behavior has this weight, a recalled message 1: it sums up many of them."""

_LONG_TOKENS = 250
"""Beside the state, only texts of more tokens are shortened."""

_MIN_LEFT = 60
"""With less room than this, nothing is shortened."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What may stand in the memory section."""

    context: str  # the text of the behaviors
    noted: Sequence[str]  # lines of it that `CallContext.used` names, best of each kind first
    recalled: Mapping[int, RecalledLine]  # by sequence, best first
    told: Mapping[int, Collection[str]] = field(default_factory=dict)  # context that says the same
    leading: Collection[str] = ()  # lines under these headings are taken first


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line with its indented lines, and the heading that it stands under ("" for none).

    `at` is for sorting: later entries have a higher one. A recalled message has its sequence,
    `seq`, and its date as heading.
    """

    at: int
    heading: str
    text: str
    seq: int = 0

    @property
    def is_state(self) -> bool:
        """Whether it is the JSON of the running state."""
        return self.heading == STATE and self.text.startswith("{")


def fit_memory_context(
    counter: TokenCounter, offer: Offer, query: str, limit: int
) -> tuple[str, dict[int, str]]:
    """Return memory context and recalled lines by sequence, together at most `limit` tokens.

    Memory context keeps its order, and recalled lines are in the order of time. A heading without
    entries is left out. What the context says already is not recalled.

    Leading lines and pinned facts are always taken. Beside them, recalled lines get at least half
    of the limit, or what they can fill of it. A state that is too long loses the ends of its
    longest values and stays JSON.

    Any other entry has more value if it shares words with the query, if it ranks higher among those
    of its kind, and if it is short. In a kind of the behaviors more shared words rank higher, then
    an earlier place in `noted`. Of these only a long text, such as a narrative, is shortened.
    """
    max_limit, leading = limit, {ALWAYS, *offer.leading}
    entries = [*_entries(offer.context)]
    first = [each for each in entries if each.is_state or each.heading in leading]
    first.sort(key=lambda each: each.is_state)
    messages = [_Entry(0, line.date, line.text, seq) for seq, line in offer.recalled.items()]
    by_heading: dict[str, list[_Entry]] = {}
    for each in entries:
        if each not in first:
            by_heading.setdefault(each.heading, []).append(each)
    kinds = [messages, *by_heading.values()]
    costs = {each: counter.count(f"{each.text}\n") for each in (*messages, *entries)}
    dates = {each.heading for each in messages}
    recalled_tokens = sum(costs[each] for each in messages)
    recalled_tokens += sum(counter.count(f"{date}\n") for date in dates)
    share, unclaimed = limit // _PARTS, limit - counter.count(offer.context) - recalled_tokens
    behaviors_limit = limit - min(share, recalled_tokens)
    ranked = _ranked(costs, kinds, query, offer.noted, share)
    taken: list[_Entry] = []
    headings: set[str] = {""}
    for entry in (*first, *ranked):
        is_free = entry.seq or entry.heading in leading
        left = limit if is_free else min(limit, behaviors_limit)
        heading = 0 if entry.heading in headings else counter.count(f"{entry.heading}\n")
        text, cost = entry.text, costs[entry]
        max_tokens = min(max(share, unclaimed + cost), left - heading)
        if cost > max_tokens and not entry.seq and entry.heading not in leading:
            text = _shortened(counter, entry, max_tokens - 1)
            cost = counter.count(f"{text}\n")
        if text and heading + cost <= left:
            limit -= heading + cost
            behaviors_limit -= 0 if entry.seq else heading + cost
            headings.add(entry.heading)
            taken.append(replace(entry, text=text))
    shown = {each.text for each in taken if not each.seq}
    again = {seq for seq, lines in offer.told.items() if not shown.isdisjoint(lines)}
    if not again.isdisjoint(offer.recalled):
        recalled = {seq: line for seq, line in offer.recalled.items() if seq not in again}
        return fit_memory_context(counter, replace(offer, recalled=recalled), query, max_limit)
    context = sorted((each for each in taken if not each.seq), key=lambda each: each.at)
    recalled = {each.seq: RecalledLine(each.heading, each.text) for each in taken if each.seq}
    return "\n".join(_with_headings(context)), with_dates(recalled)


def _ranked(
    costs: Mapping[_Entry, int],
    kinds: Iterable[Sequence[_Entry]],
    query: str,
    noted: Sequence[str],
    max_tokens: int,
) -> list[_Entry]:
    """Return the entries of all kinds, the one with the most value for its tokens first.

    `costs` has the tokens of each. Recalled messages keep their order. A word shared with the query
    halves the cost of an entry of the behaviors, and the search has found every recalled message.
    """
    asked = content_forms(query)
    positions = {line: position for position, line in enumerate(noted)}
    ranked: list[tuple[float, _Entry]] = []
    for kind in kinds:
        if any(each.seq for each in kind):
            best, weights = kind, [2] * len(kind)
        else:
            shared = {each: len(asked & content_forms(each.text)) for each in kind}
            position = {each: positions.get(each.text, len(positions)) for each in kind}
            best = sorted(kind, key=lambda e: (-shared[e], position[e]))
            weights = [_LEARNED * (1 + bool(shared[each])) for each in best]
        ranked += [
            ((rank + 1) * min(max_tokens, costs[each]) / weight, each)
            for rank, (each, weight) in enumerate(zip(best, weights, strict=True))
        ]
    return [each for _, each in sorted(ranked, key=lambda pair: pair[0])]


def _shortened(counter: TokenCounter, entry: _Entry, limit: int) -> str:
    """Return the text, shortened if it is the state or a long one."""
    if limit < _MIN_LEFT:
        return entry.text
    if entry.is_state:
        return _shorter_state(counter, entry.text, limit)
    is_long = counter.count(entry.text) > _LONG_TOKENS
    return counter.shorten(entry.text, limit) if is_long else entry.text


def _shorter_state(counter: TokenCounter, text: str, limit: int) -> str:
    """Halve the longest value of the JSON again and again, until the text fits or all are empty."""
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


def _entries(context: str) -> Iterator[_Entry]:
    heading, lines = "", list[str]()
    for at, line in enumerate(context.splitlines()):
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
        yield _Entry(len(context), heading, "\n".join(lines))


def _with_headings(entries: Iterable[_Entry]) -> Iterator[str]:
    before = ""
    for entry in entries:
        if entry.heading and entry.heading != before:
            yield entry.heading
        before = entry.heading
        yield entry.text
