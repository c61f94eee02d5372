"""Fits what behaviors tell into a number of tokens by leaving out whole entries."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace

from memory.behaviors.chat_instructions import HEADING
from memory.search.words import asked_terms, words_of
from memory.text.tokens import TokenCounter

_LONG_TOKENS = 250
_MIN_LEFT = 60


@dataclass(frozen=True, slots=True)
class _Entry:
    """One line with its indented lines, and the heading that it stands under ("" for none)."""

    heading: str
    text: str


def told_within(counter: TokenCounter, told: str, query: str, limit: int) -> str:
    """Return the entries of `told` that fit into `limit` tokens, in their order.

    JSON, which is the running state, and the instructions are taken first. If the state is too
    long, its longest values are shortened, and it stays JSON. Then come entries that share most
    words with the query, the earlier ones first. A heading stands only over entries. Only a long
    text, such as a narrative, is shortened to the tokens that are left.
    """
    if counter.count(told) <= limit:
        return told
    asked = {form for forms in asked_terms(words_of(query), {}) for form in forms}
    entries = list(_entries(told))

    def worth(at: int) -> tuple[bool, int]:
        text = entries[at].text
        terms = {form for forms in asked_terms(words_of(text), {}) for form in forms}
        comes_first = text.startswith("{") or entries[at].heading == HEADING
        return comes_first, len(asked & terms)

    taken: dict[int, _Entry] = {}
    left = limit
    for at in sorted(range(len(entries)), key=worth, reverse=True):
        entry = entries[at]
        is_first = all(entries[other].heading != entry.heading for other in taken)
        heading = f"{entry.heading}\n" if is_first and entry.heading else ""
        text = entry.text
        is_long = counter.count(text) > max(left, _LONG_TOKENS)
        if is_long and left > _MIN_LEFT:
            room = left - counter.count(heading) - 1
            is_state = text.startswith("{")
            text = (_shorter_state if is_state else TokenCounter.shorten)(counter, text, room)
        cost = counter.count(f"{heading}{text}\n")
        if text and cost <= left:
            left -= cost
            taken[at] = replace(entry, text=text)
    return "\n".join(_with_headings([taken[at] for at in sorted(taken)]))


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
    for line in told.splitlines():
        if line.startswith("  ") and lines:
            lines.append(line)
            continue
        if lines:
            yield _Entry(heading, "\n".join(lines))
            lines = []
        if line.endswith(":") and not line.startswith(("[", "#", "{")):
            heading = line
        else:
            lines = [line]
    if lines:
        yield _Entry(heading, "\n".join(lines))


def _with_headings(entries: list[_Entry]) -> Iterator[str]:
    before = ""
    for entry in entries:
        if entry.heading != before:
            yield entry.heading
        before = entry.heading
        yield entry.text
