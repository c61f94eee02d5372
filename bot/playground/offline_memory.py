"""The offline model of internal calls: it quotes what people said and understands nothing.

With it the playground shows without a key how a running state, facts and synopses form.
"""

import re
from collections.abc import Iterator, Mapping

import orjson

from memory.text.shape import Shape

_ABOUT_ME = re.compile(
    r"\b(?:my|i am|i['’]m|i have|i live|i work|i like|i love|i prefer|i hate|we have|our)\b"
    r"|\b(?:ich|mein\w*|wir|unser\w*)\b|\b(?:я|мой|моя|моё|мои|меня|мне|у нас)\b"
    r"|\b(?:yo|mi|mis|me|soy|tengo|nuestr\w+)\b|من |ام\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？؟]\s*$")
_ASKED = re.compile(r"^## (\w+)$", re.MULTILINE)
_MAX_CHARS = 200

_Said = tuple[int, str, str, bool]
"""Number, speaker and text of a message, and whether it is untrusted."""


class OfflineInternalModel:
    """Answers internal calls with sentences from the input."""

    async def fill(self, instructions: str, material: str, shape: Shape) -> Mapping[str, object]:  # noqa: ARG002 - the port's
        """Return the parts that the instructions ask for; the others are None."""
        asked = set(_ASKED.findall(instructions))
        said = list(_said(material))
        parts: dict[str, object] = {
            "running_state": _state(said),
            "facts": {"facts": list(_facts(said))},
            "synopses": _synopsis(said),
        }
        return {name: part if name in asked else None for name, part in parts.items()}

    async def write(self, instructions: str, material: str, max_tokens: int) -> str:  # noqa: ARG002 - the port's
        """Return the memories of the input with their dates, one a line."""
        lines = (line for line in material.splitlines() if line.startswith('{"on":'))
        return "\n".join("{on}: {memory}".format_map(orjson.loads(line)) for line in lines)


def _said(material: str) -> Iterator[_Said]:
    for line in material.splitlines():
        if line.startswith('{"n":'):
            message = orjson.loads(line)
            yield message["n"], message["who"], message["said"], message.get("untrusted", False)


def _facts(said: list[_Said]) -> Iterator[dict[str, object]]:
    for number, who, text, is_untrusted in said:
        is_statement = _ABOUT_ME.search(text) and not _QUESTION.search(text)
        if who != "assistant" and not is_untrusted and is_statement and len(text) <= _MAX_CHARS:
            yield {"text": text, "message": number, "replaces": None, "repeats": None}


def _state(said: list[_Said]) -> dict[str, object]:
    by_people = [text for _, who, text, _ in said if who != "assistant"]
    questions = [text[:_MAX_CHARS] for text in by_people if _QUESTION.search(text)]
    last = by_people[-1][:_MAX_CHARS] if by_people else "unknown"
    return {
        "first_name": "unknown",
        "last_name": "unknown",
        "discussion_summary": f"Last said: {last}",
        "key_entities": [],
        "open_problems": questions[-3:],
        "current_goals": [],
    }


def _synopsis(said: list[_Said]) -> dict[str, object]:
    by_people = [text[:_MAX_CHARS] for _, who, text, _ in said if who != "assistant"]
    answers = [text[:_MAX_CHARS] for _, who, text, _ in said if who == "assistant"]
    return {
        "likely_request": by_people[0] if by_people else None,
        "actions": f"Answered {len(answers)} times",
        "result": answers[-1] if answers else None,
        "behaviour": None,
        "emotions": None,
        "preferences": None,
        "reasoning": None,
    }
