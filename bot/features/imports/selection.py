"""What of an export, or of a pasted list, is new and has room: as passages, with counts."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import compress
from pathlib import Path
from typing import Any

from bot.parsing.processes import Parser
from memory.documents import Section, passages
from memory.text.tokens import TokenCounter

READER = Parser(Path(__file__).with_name("talk_reader.py"), 64 * 2**20, 24 * 2**20, 256, 10)
LIST = "list"  # what a list is imported from
_MAX_LIST_BYTES = 2**18
_MAX_LINE = 500
_MIN_LINES = 2
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+")
_DATE = re.compile(r"^[\[(]?((?:19[7-9]|2\d\d)\d-\d\d-\d\d)[\])]?(?:\s*[-–—:]\s*|\s+)")
"""ChatGPT and Claude begin each line with such a date when they list their memories. An earlier one
is no date of a memory; the year 1 has no date in the zones that are behind UTC."""
_HEADING = re.compile(r"^\s*(?:#{1,6}\s|```|-{3,}\s*$)")


@dataclass(slots=True)
class Selection:
    """What of an export is stored: passages in the order of time, and counts for the preview."""

    source: str
    passages: list[Section]
    talks: int = 0
    messages: int = 0
    facts: int = 0
    known: int = 0  # talks that are stored already
    beyond: int = 0  # the oldest ones, for which there is no room
    first_at: float = 0  # 0 if no talk has a date
    last_at: float = 0


def list_in(content: bytes, *, is_asked: bool) -> str:
    """Return the text of a list with one fact a line, "" for any other content.

    Every line begins with a bullet, a number or a date, unless the person says that it `is_asked`.
    """
    if len(content) > _MAX_LIST_BYTES:
        return ""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return ""
    lines = [line for line in _lines(text) if len(line) <= _MAX_LINE]
    is_whole = len(lines) == len(_lines(text)) and len(lines) >= (1 if is_asked else _MIN_LINES)
    is_marked = all(_BULLET.match(line) or _DATE.match(line.strip()) for line in lines)
    return text if is_whole and (is_asked or is_marked) else ""


def read_list(pasted: str, at: float) -> dict[str, Any]:
    """Return the lines of a list as facts, each of its date, or else of `at`, when it was sent."""
    facts = dict(_dated(line, at) for line in _lines(pasted))
    talks = [
        {"title": "", "at": said_at, "messages": [["fact", text, said_at]]}
        for text, said_at in sorted(facts.items(), key=lambda each: -each[1])
        if text
    ]
    return {"source": LIST, "talks": talks, "beyond": 0}


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip() and not _HEADING.match(line)]


def _dated(line: str, at: float) -> tuple[str, float]:
    text = _BULLET.sub("", line).strip()
    found = _DATE.match(text)
    if found is None:
        return text, at
    try:
        said_at = datetime.fromisoformat(found[1]).replace(tzinfo=UTC).timestamp()
    except ValueError:
        return text, at
    return text[found.end() :].strip(), min(said_at, at)


def select(
    answer: dict[str, Any], known: set[tuple[str, float, str]], room: int, tokens: TokenCounter
) -> Selection:
    """Take the newest talks that fit; a talk is stored with all its new passages or not at all."""
    found = Selection(answer["source"], [], beyond=answer["beyond"])
    taken: set[tuple[str, float, str]] = set()
    for number, talk in enumerate(answer["talks"]):
        cut = passages(_sections(talk, found.source), tokens)
        # A fact is the same at any time.
        is_fact = talk["messages"][0][0] == "fact"
        keys = [(each.place, 0 if is_fact else each.said_at, each.text) for each in cut]
        new = [*compress(cut, [key not in known and key not in taken for key in keys])]
        if len(found.passages) + len(new) > room:
            found.beyond += len(answer["talks"]) - number
            break
        if not new:
            found.known += not taken.issuperset(keys)
            continue
        taken |= {*keys}  # a zip may hold a talk in two of its files
        found.passages = new + found.passages
        if is_fact:
            found.facts += 1
        else:
            found.talks += 1
            found.messages += len(talk["messages"])
        times = [at for *_, at in talk["messages"] if at]
        found.first_at = min(filter(None, (*times, found.first_at)), default=0)
        found.last_at = max([*times, found.last_at])
    return found


def _sections(talk: dict[str, Any], source: str) -> list[Section]:
    said: list[tuple[list[str], float]] = []
    for role, text, at in talk["messages"]:
        shown = f"{source}: {text}" if role == "assistant" else text
        if role == "assistant" and said:
            said[-1][0].append(shown)
        else:
            said.append(([shown], at))
    return [Section("\n".join(texts), talk["title"], at) for texts, at in said]
