"""Chooses what stands in the memory section, from the behaviors and the recalled messages.

Both offer whole lines. Leading text, pinned facts and the running state are taken first. Then the
line with the most value for its tokens is taken, of any kind, until no further line fits. The
behaviors leave half of the room to recalled messages if these can fill it.

The best recalled messages are shown long, the others as short passages around the words of the
question, so that many fit. `search_memory` shows them in the same way.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import chain, groupby

from memory.behaviors.context import AgentContext
from memory.behaviors.running_state import HEADING as STATE
from memory.behaviors.user_facts import ALWAYS
from memory.message import Message
from memory.search.excerpt import Asked, relevant_excerpt
from memory.search.message_search import Later, SearchResult
from memory.search.question import asks_for_all, is_question
from memory.search.words import asked_terms, content_forms, words_of
from memory.text.message_lines import calendar_day, dated, memory_line
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import escaped, one_line

_MAX_MISSES = 10  # packing ends after so many messages that did not fit

_MAX_READ_WORDS = 30  # the first words of a text decide whether it says something by itself

_SAME_DATE = "-"  # begins a line in place of its date if that is the date of the line above


_LONG = 3  # so many of the best messages are shown long; none if the question asks for a list
_LONG_MESSAGE_TOKENS = 200
_SHORT_TOKENS = 30  # of any other
_MIN_WORDS = 4  # a text with fewer content words is not understood without its exchange
_ALIKE = 0.9  # texts that share more than this share of their words say the same


@dataclass(frozen=True, slots=True)
class RecalledLine:
    """One recalled message: its date, as "[12 March 2025]", and its line with "-" for the date."""

    date: str
    text: str


def with_dates(lines: Mapping[int, RecalledLine]) -> dict[int, str]:
    """Return whole lines by sequence in the order of time, each date once, before its first line.

    Lines of one date stand together even if the clock has gone back.
    """
    dates: dict[str, list[int]] = {}
    for seq, line in sorted(lines.items()):
        dates.setdefault(line.date, []).append(seq)
    dated_lines = {seq: lines[seq].text for seqs in dates.values() for seq in seqs}
    for date, (first, *_) in dates.items():
        dated_lines[first] = date + dated_lines[first].removeprefix(_SAME_DATE)
    return dated_lines


def _mark(later: Later, zone: tzinfo) -> str:
    until = f" [until {calendar_day(datetime.fromtimestamp(later.ended_at, zone).date())}"
    return f"{until}, then: {escaped(one_line(later.text))}]" if later.text else f"{until}]"


@dataclass(slots=True, eq=False)
class RecallPacker:
    """Packs messages as dated lines.

    With `is_numbered`, each line has the message's number, so that a tool can be asked about it.
    """

    counter: TokenCounter
    _: KW_ONLY
    is_numbered: bool = False

    def ranked(
        self,
        context: AgentContext,
        found: Sequence[SearchResult],
        query: str,
        limit: int,
        exclude: Collection[int] = (),
    ) -> dict[int, RecalledLine]:
        """Return the lines that fit into `limit` tokens with their dates, by sequence, best first.

        `found` is sorted, the best first. Messages with a sequence in `exclude` are left out, and
        so is what repeats a better one.
        """
        zone = context.call_context.zone
        longs = 0 if asks_for_all(query) else _LONG
        left, misses, lines, dates = limit, 0, dict[int, RecalledLine](), set[str]()
        later = {seq: each for result in found for seq, each in result.later.items()}
        count, asked = self.counter.count, Asked(query)
        for message in _unrepeated(found, query, exclude):
            tokens = _LONG_MESSAGE_TOKENS if len(lines) < longs else _SHORT_TOKENS
            tokens = min(tokens, limit // 2)
            excerpt = relevant_excerpt(escaped(message.text), asked, tokens, count)
            number = f"#{message.seq} " if self.is_numbered else ""
            line = memory_line(message, excerpt, zone, context.speakers)
            text = f"{_SAME_DATE} {number}{line}"
            mark = "".join(_mark(each, zone) for each in later.get(message.seq, ()))
            date = f"[{dated(message.sent_at, context.now, zone)}]"
            cost = count(f"{text}\n") + (count(mark) if mark else 0)
            cost += count(date) if date not in dates else 0
            if cost <= left:
                dates.add(date)
                left -= cost
                lines[message.seq] = RecalledLine(date, f"{text}{mark}")
            elif (misses := misses + 1) == _MAX_MISSES:
                break
        return lines


def _unrepeated(
    found: Sequence[SearchResult], query: str, exclude: Collection[int]
) -> Iterator[Message]:
    """Yield each message to show once.

    What repeats an earlier one is left out, and so is a short answer to what was no question,
    if it has no word of the query.
    """
    seen = set(exclude)
    earlier = defaultdict[int, list[frozenset[str]]](list)  # by their number of words
    replies = {
        each.seq
        for result in found
        if any(each.role == "user" and is_question(each.text) for each in result.messages)
        for each in result.messages
    }
    # First the hits, then the rest of the exchanges of those that cannot stand alone.
    hits = (result.hit for result in found)
    rest = (
        message
        for result in found
        if is_question(result.hit.text) or not _says_enough(result.hit.text)
        for message in result.messages
    )
    asked = set[str]()  # looked up once, if a short answer needs it
    for message in chain(hits, rest):
        words = frozenset(words_of(message.text))
        lengths = range(int(len(words) * _ALIKE), int(len(words) / _ALIKE) + 1)
        near = chain.from_iterable(earlier[each] for each in lengths if each in earlier)
        is_repeated = any(len(words & each) > _ALIKE * len(words | each) for each in near)
        if message.seq in seen or not words or is_repeated:
            continue
        is_reply = message.role == "user" or message.seq in replies
        if not (is_reply or _says_enough(message.text)):
            asked = asked or content_forms(query)
            if asked.isdisjoint(content_forms(message.text)):
                continue
        seen.add(message.seq)
        earlier[len(words)].append(words)
        yield message


def _says_enough(text: str) -> bool:
    return len(asked_terms(words_of(text)[:_MAX_READ_WORDS], {})) >= _MIN_WORDS


_PARTS = 2
"""A state or a long text gets the limit divided by this, or more if there is room for all."""

_RECALLED, _LEARNED = 1, 2
"""The weights of a recalled message, and of an entry of a behavior, which sums up many of them.

What shares a word with the query weighs double. A recalled message always does: it was found."""

_LONG_TOKENS = 250  # beside the state, only texts of more tokens are shortened

_MIN_LEFT = 60  # with less room than this, nothing is shortened


@dataclass(frozen=True, slots=True)
class Offer:
    """What may stand in the memory section."""

    context: str  # the text of the behaviors
    noted: Sequence[str]  # lines of it that `CallContext.used` names, best of each kind first
    recalled: Mapping[int, RecalledLine]  # by sequence, best first
    repeated: Mapping[int, Collection[str]] = field(default_factory=dict)  # by these lines of it
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

    Any other entry has more value if it shares words with the query, if it ranks high in its kind,
    and if it is short. Entries under one heading rank by how many words they share with the query,
    then by their place in `noted`. Only a text of more than 250 tokens is shortened.
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
        if cost > max_tokens and not is_free:
            text = _shortened(counter, entry, max_tokens - 1)
            cost = counter.count(f"{text}\n")
        if text and heading + cost <= left:
            limit -= heading + cost
            behaviors_limit -= 0 if entry.seq else heading + cost
            headings.add(entry.heading)
            taken.append(replace(entry, text=text))
    shown = {each.text for each in taken if not each.seq}
    again = {seq for seq, lines in offer.repeated.items() if not shown.isdisjoint(lines)}
    if not again.isdisjoint(offer.recalled):
        recalled = {seq: line for seq, line in offer.recalled.items() if seq not in again}
        return fit_memory_context(counter, replace(offer, recalled=recalled), query, max_limit)
    context = sorted((each for each in taken if not each.seq), key=lambda each: each.at)
    recalled = {each.seq: RecalledLine(each.heading, each.text) for each in taken if each.seq}
    lines: list[str] = []
    for heading, under in groupby(context, key=lambda each: each.heading):
        lines += [*([heading] if heading else []), *(each.text for each in under)]
    return "\n".join(lines), with_dates(recalled)


def _ranked(
    costs: Mapping[_Entry, int],
    kinds: Iterable[Sequence[_Entry]],
    query: str,
    noted: Sequence[str],
    max_tokens: int,
) -> list[_Entry]:
    """Return the entries of all kinds, the one with the most value for its tokens first.

    `costs` has the tokens of each. Recalled messages keep their order.
    """
    asked = content_forms(query)
    positions = {line: position for position, line in enumerate(noted)}
    ranked: list[tuple[float, _Entry]] = []
    for kind in kinds:
        if any(each.seq for each in kind):
            best, weights = kind, [2 * _RECALLED] * len(kind)
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
    text = entry.text
    if limit < _MIN_LEFT:
        return text
    if not entry.is_state:
        return counter.shorten(text, limit) if counter.count(text) > _LONG_TOKENS else text
    # The longest value of the JSON is halved until the text fits or all values are empty.
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
