"""The offline model of internal calls: it quotes what people said and understands nothing.

With it the playground shows without a key how a running state, facts and synopses form.
"""

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass

import orjson

from bot.playground.offline_reminders import SAID, begins_with_wish
from memory.text.shape import AnswerShape

_QUESTION = re.compile(r"[?？؟]\s*$")
_ASKED = re.compile(r"^## (\w+)$", re.MULTILINE)
_RANGE = re.compile(r"^## (\w+): learns from messages (\d+) to (\d+)$", re.MULTILINE)
_MAX_CHARS = 200


@dataclass(frozen=True, slots=True)
class Said:
    """A message in the input of an internal call."""

    number: int
    who: str
    text: str
    is_untrusted: bool

    @property
    def by_person(self) -> bool:
        """Whether a person said it, and not the assistant."""
        return self.who != "assistant"


class OfflineInternalModel:
    """Answers internal calls with sentences from the input."""

    async def fill(
        self,
        instructions: str,
        content: str,
        shape: AnswerShape,  # noqa: ARG002 - the port's
    ) -> Mapping[str, object]:
        """Return the parts that the instructions ask for; the others are None."""
        asked = set(_ASKED.findall(instructions))
        parts: dict[str, object] = {
            "running_state": _state(said_in(content, "running_state")),
            "facts": {"facts": _facts(said_in(content, "facts"))},
            "synopses": _synopsis(said_in(content, "synopses")),
        }
        return {name: part if name in asked else None for name, part in parts.items()}

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:  # noqa: ARG002 - the port's
        """Return the memories of the input with their dates, one a line."""
        lines = (line for line in content.splitlines() if line.startswith('{"on":'))
        return "\n".join("{on}: {memory}".format_map(orjson.loads(line)) for line in lines)


def said_in(content: str, part: str) -> list[Said]:
    """Return the messages of an input that one part learns from, oldest first."""
    ranges = {name: (int(first), int(last)) for name, first, last in _RANGE.findall(content)}
    first, last = ranges.get(part, (0, sys.maxsize))
    lines = (orjson.loads(line) for line in content.splitlines() if line.startswith('{"n":'))
    return [
        Said(line["n"], line["who"], line["said"], line.get("untrusted", False))
        for line in lines
        if first <= line["n"] <= last
    ]


def _facts(said: list[Said]) -> list[dict[str, object]]:
    return [
        fact_part(each.text, each.number, changes=bool(SAID["changes"].search(each.text)))
        for each in said
        if each.by_person
        and not each.is_untrusted
        and SAID["about_me"].search(each.text)
        and not _QUESTION.search(each.text)
        and not begins_with_wish(each.text)
        and len(each.text) <= _MAX_CHARS
    ]


def fact_part(text: str, message: int, *, changes: bool) -> dict[str, object]:
    """Return a fact as the model of internal calls writes it."""
    lasts = "changes" if changes else "always"
    return {"text": text, "message": message, "replaces": None, "repeats": None, "lasts": lasts}


def _state(said: list[Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    questions = [text for text in by_people if _QUESTION.search(text)]
    return {
        "first_name": "unknown",
        "last_name": "unknown",
        "discussion_summary": f"Last said: {by_people[-1] if by_people else 'unknown'}",
        "key_entities": [],
        "open_problems": questions[-3:],
        "current_goals": [],
    }


def _synopsis(said: list[Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    answers = [each.text[:_MAX_CHARS] for each in said if not each.by_person]
    return synopsis_part(
        by_people[0] if by_people else None,
        f"Answered {len(answers)} times",
        answers[-1] if answers else None,
    )


def synopsis_part(
    wish: str | None = None, actions: str | None = None, result: str | None = None
) -> dict[str, object]:
    """Return a synopsis as the model of internal calls writes it; None says nothing."""
    unknown = dict.fromkeys(("behaviour", "emotions", "preferences", "reasoning"))
    return {"likely_request": wish, "actions": actions, "result": result, **unknown}
