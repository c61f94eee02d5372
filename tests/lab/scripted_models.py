"""Models that answer by rules after a fixed time, and the tape of their requests.

Answers to internal calls are as long as a good model's answers and consistent with the request:
states are continued, facts name their messages, and stored facts are repeated or replaced.
"""

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal
from zlib import crc32

from bot.model.call import ModelReply, ModelRequest
from memory.behaviors.tool import ToolDefinition
from memory.text.internal_model import AnswerShape

Kind = Literal["main", "fill", "write"]

_FACTS_SHARE = 0.25  # the share of people's messages that contain a fact

_DATED_SHARE = 0.3  # the share of facts that tell of certain days

_SUMMARY_WORDS = 90
_NARRATIVE_WORDS = 110
_ENTRIES = 6


@dataclass(frozen=True, slots=True)
class Request:
    """One request: its pieces in the order in which a server reads them, and the answer.

    `at` is the simulated time in Unix seconds. `label` says what an internal call was for.
    """

    turn: int
    at: float
    kind: Kind
    label: str
    pieces: tuple[str, ...]
    answer: str


@dataclass(slots=True)
class Tape:
    """All requests of a run in order; the run sets the number of the turn."""

    now: Callable[[], float]
    turn: int = 0
    requests: list[Request] = field(default_factory=list)

    def note(self, kind: Kind, label: str, pieces: Sequence[str], answer: str) -> None:
        self.requests.append(Request(self.turn, self.now(), kind, label, tuple(pieces), answer))


class ScriptedChatModel:
    """Gives the answer that was set in `answer`."""

    def __init__(self, tape: Tape, latency_s: float) -> None:
        self._tape = tape
        self._latency_s = latency_s
        self.answer = ""

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return the answer; it never calls tools."""
        pieces = (_as_json(request.tools), *(message.content for message in request.messages))
        self._tape.note("main", "", pieces, self.answer)
        await asyncio.sleep(self._latency_s)
        return ModelReply(self.answer, (), "stop")


class ScriptedInternalModel:
    """Returns states, facts and synopses, and writes narratives."""

    def __init__(self, tape: Tape, latency_s: float) -> None:
        self._tape = tape
        self._latency_s = latency_s

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        asked = [name for name in shape.parts if f"\n## {name}\n" in instructions]
        stored, _, said = content.partition("## What was said\n")
        lines = [json.loads(line) for line in said.splitlines()]
        parts: dict[str, object] = dict.fromkeys(shape.parts)
        for name in asked:
            _, _, section = stored.partition(f"## {name}: learns from messages ")
            head, _, body = section.partition("\n")
            first, last = map(int, re.findall(r"\d+", head))
            mine = [line for line in lines if first <= line["n"] <= last]
            parts[name] = _ANSWERS[name](body.partition("\n\n## ")[0], mine)
        pieces = (json.dumps(shape.schema), instructions, content)
        self._tape.note("fill", "+".join(asked), pieces, json.dumps(parts))
        await asyncio.sleep(self._latency_s)
        return parts

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return a narrative of the memories in the content."""
        del max_tokens
        memories = [json.loads(line) for line in content.splitlines()[1:]]
        max_words = _NARRATIVE_WORDS // len(memories)
        narrative = " ".join(
            f"On {each['on']}: {_first(each['memory'], max_words)}." for each in memories
        )
        self._tape.note("write", "narrative", (instructions, content), narrative)
        await asyncio.sleep(self._latency_s)
        return narrative


def _as_json(tools: Sequence[ToolDefinition]) -> str:
    return json.dumps(
        [
            {"name": each.name, "description": each.description, "parameters": each.parameters}
            for each in tools
        ],
        default=dict,
    )


def _state(stored: str, lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Continue a state: new entries first, then stored ones as far as they fit."""
    old = json.loads(stored) if stored.startswith("{") else {}
    said = [line["said"] for line in lines if line["who"] != "assistant"]
    news = " ".join(f"{_first(each, 14)}." for each in reversed(said))
    names = Counter(re.findall(r"(?<=\w )[A-Z][a-z]{2,}", " ".join(line["said"] for line in lines)))
    entities = [*(name for name, _ in names.most_common()), *old.get("key_entities", ())]
    random = _random(news)
    fragments = [_first(each, random.randint(6, 14)) for each in said]
    half = len(fragments) // 2
    return {
        "first_name": old.get("first_name", "unknown"),
        "last_name": old.get("last_name", "unknown"),
        "discussion_summary": _first(f"{news} {old.get('discussion_summary', '')}", _SUMMARY_WORDS),
        "key_entities": list(dict.fromkeys(entities))[:_ENTRIES],
        "open_problems": [*fragments[:half], *old.get("open_problems", ())][:_ENTRIES],
        "current_goals": [*fragments[half:], *old.get("current_goals", ())][:_ENTRIES],
    }


def _facts(stored: str, lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Return facts of some lines: mostly new ones, sometimes repeated or changed ones."""
    ids = [json.loads(line)["id"] for line in stored.splitlines() if line.startswith("{")]
    facts = []
    for line in lines:
        random = _random(line["said"])
        if line["who"] == "assistant" or random.random() > _FACTS_SHARE:
            continue
        about = random.choice(ids) if ids and random.random() < 0.3 else None
        again = about is not None and random.random() < 0.5
        facts.append(
            {
                "text": f"{_first(line['said'], random.randint(6, 14))}.",
                "message": line["n"],
                "replaces": None if again else about,
                "repeats": about if again else None,
                "lasts": "always",
                "kind": _first(line["said"], 1).casefold(),
                "from": line["on"][:10] if random.random() < _DATED_SHARE else None,
                "to": None,
            }
        )
    return {"facts": facts}


def _synopsis(_: str, lines: Sequence[dict[str, Any]]) -> dict[str, object]:
    """Return a synopsis of a session, one sentence a field; some fields stay empty."""
    random = _random(lines[0]["said"])
    said = [line["said"] for line in lines if line["who"] != "assistant"]
    answers = [line["said"] for line in lines if line["who"] == "assistant"]

    def sentence(of: Sequence[str]) -> str:
        return f"{_first(random.choice(of or said), random.randint(14, 28))}."

    return {
        "likely_request": sentence(said),
        "actions": sentence(answers),
        "result": sentence(answers),
        "behaviour": sentence(said) if random.random() < 0.6 else None,
        "emotions": sentence(said) if random.random() < 0.4 else None,
        "preferences": sentence(said) if random.random() < 0.5 else None,
        "reasoning": sentence(answers),
    }


_ANSWERS: Mapping[str, Callable[[str, Sequence[dict[str, Any]]], object]] = {
    "running_state": _state,
    "facts": _facts,
    "synopses": _synopsis,
}


def _first(text: str, words: int) -> str:
    return " ".join(text.split()[:words]).rstrip(".,;:?!")


def _random(text: str) -> Random:
    return Random(crc32(text.encode()))
