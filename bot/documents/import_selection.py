"""What of an export, or of a pasted list, is new and has room: as passages, with counts."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bot.documents.formats import REASONS, DocumentRefused
from bot.documents.isolated import ParserFailed, parse
from memory.documents.chunking import Section, passages
from memory.text.tokens import TokenCounter

_READER = Path(__file__).with_name("talk_reader.py")
_MEMORY_MB, _CPU_S, _TIMEOUT_S = 448, 10, 25.0
_LIST = "list"
"""What a pasted list is imported from."""
_BULLET = re.compile(r"^\s*(?:[-*•–]|\d{1,3}[.)])\s+")


@dataclass(frozen=True, slots=True)
class Selection:
    """What of an export is stored: passages in the order of time, and counts for the preview.

    `known` counts talks that are stored already, `beyond` the oldest ones, for which there is no
    room. `first_at` and `last_at` are 0 if no talk has a date.
    """

    source: str
    passages: list[Section]
    talks: int = 0
    messages: int = 0
    facts: int = 0
    known: int = 0
    beyond: int = 0
    first_at: float = 0
    last_at: float = 0


async def read_export(content: bytes) -> dict[str, Any]:
    """Return the talks of an export; raise `DocumentRefused`."""
    try:
        answer: dict[str, Any] = await parse(_READER, (_MEMORY_MB, _CPU_S), content, _TIMEOUT_S)
    except ParserFailed:
        raise DocumentRefused("damaged") from None
    if reason := answer.get("refused"):
        raise DocumentRefused(reason if reason in REASONS else "damaged")
    return answer


def read_list(pasted: str, at: float) -> dict[str, Any]:
    """Return the lines of a list, without their bullets, each as a fact of this time."""
    lines = [_BULLET.sub("", line).strip() for line in pasted.splitlines()]
    talks = [
        {"title": "", "at": at, "messages": [["fact", line, at]]}
        for line in dict.fromkeys(lines[::-1])
        if line
    ]
    return {"source": _LIST, "talks": talks, "beyond": 0}


def select(
    answer: dict[str, Any],
    known: set[tuple[str, float, str]],
    room: int,
    tokens: TokenCounter,
) -> Selection:
    """Take the newest talks that fit; a talk is stored with all its new passages or not at all."""
    found = Selection(answer["source"], [], beyond=answer["beyond"])
    for number, talk in enumerate(answer["talks"]):
        cut = passages(_sections(talk, found.source), tokens)
        # A fact is the same at any time.
        is_fact = talk["messages"][0][0] == "fact"
        new = [
            each
            for each in cut
            if (each.place, 0 if is_fact else each.said_at, each.text) not in known
        ]
        if len(found.passages) + len(new) > room:
            return replace(found, beyond=found.beyond + len(answer["talks"]) - number)
        if not new:
            found = replace(found, known=found.known + 1)
            continue
        times = [at for *_, at in talk["messages"] if at]
        first = min([*times, *([found.first_at] if found.first_at else [])], default=0)
        found = replace(
            found,
            passages=new + found.passages,
            talks=found.talks + (not is_fact),
            facts=found.facts + is_fact,
            messages=found.messages + (0 if is_fact else len(talk["messages"])),
            first_at=first,
            last_at=max([*times, found.last_at]),
        )
    return found


def _sections(talk: dict[str, Any], source: str) -> list[Section]:
    """Return a section for each question with its answer."""
    sections: list[Section] = []
    for role, text, at in talk["messages"]:
        if role == "assistant" and sections:
            longer = f"{sections[-1].text}\n{source}: {text}"
            sections[-1] = replace(sections[-1], text=longer)
        else:
            shown = f"{source}: {text}" if role == "assistant" else text
            sections.append(Section(shown, talk["title"], at))
    return sections
