"""Plays the model of internal calls where there is no key: quotes, and understands nothing.

So that the playground shows how a state, facts and synopses form. What it keeps is in people's own
words, for it has none.
"""

import re
from collections.abc import Iterator

import orjson

from bot.playground.model_api.requests import ChatRequest

_ABOUT_ME = re.compile(
    r"\b(?:my|i am|i['’]m|i have|i live|i work|i like|i love|i prefer|i hate|we have|our)\b"
    r"|\b(?:ich|mein\w*|wir|unser\w*)\b|\b(?:я|мой|моя|моё|мои|меня|мне|у нас)\b"
    r"|\b(?:yo|mi|mis|me|soy|tengo|nuestr\w+)\b|من |ام\b",
    re.IGNORECASE,
)
_QUESTION = re.compile(r"[?？؟]\s*$")
_ASKED = re.compile(r"^## (\w+)$", re.MULTILINE)
_LONGEST = 200


def internal_answer(request: ChatRequest) -> str:
    """Return the JSON of the parts that a request asks for; the others are null."""
    asked = set(_ASKED.findall(request.messages[0].content))
    said = list(_said(request.last_user_message))
    parts: dict[str, object] = {
        "running_state": _state(said),
        "facts": {"facts": list(_facts(said))},
        "synopses": _synopsis(said),
    }
    return orjson.dumps(
        {name: part if name in asked else None for name, part in parts.items()}
    ).decode()


def narrative(request: ChatRequest) -> str:
    """Return the memories that are to be woven, one below the other."""
    lines = request.last_user_message.splitlines()
    memories = [orjson.loads(line) for line in lines if line.startswith('{"on":')]
    return "\n".join(f"{memory['on']}: {memory['memory']}" for memory in memories)


def _said(material: str) -> Iterator[tuple[int, str, str, bool]]:
    """Return number, speaker, words of each message and whether they are somebody else's."""
    for line in material.splitlines():
        if line.startswith('{"n":'):
            message = orjson.loads(line)
            yield message["n"], message["who"], message["said"], message.get("foreign", False)


def _facts(said: list[tuple[int, str, str, bool]]) -> Iterator[dict[str, object]]:
    for number, who, words, is_untrusted in said:
        is_statement = _ABOUT_ME.search(words) and not _QUESTION.search(words)
        if who != "assistant" and not is_untrusted and is_statement and len(words) <= _LONGEST:
            yield {"text": words, "message": number, "replaces": None, "repeats": None}


def _state(said: list[tuple[int, str, str, bool]]) -> dict[str, object]:
    by_people = [words for _, who, words, _ in said if who != "assistant"]
    questions = [words[:_LONGEST] for words in by_people if _QUESTION.search(words)]
    last = by_people[-1][:_LONGEST] if by_people else "unknown"
    return {
        "first_name": "unknown",
        "last_name": "unknown",
        "discussion_summary": f"Last said: {last}",
        "key_entities": [],
        "open_problems": questions[-3:],
        "current_goals": [],
    }


def _synopsis(said: list[tuple[int, str, str, bool]]) -> dict[str, object]:
    by_people = [words[:_LONGEST] for _, who, words, _ in said if who != "assistant"]
    answers = [words[:_LONGEST] for _, who, words, _ in said if who == "assistant"]
    return {
        "likely_request": by_people[0] if by_people else None,
        "actions": f"Answered {len(answers)} times",
        "result": answers[-1] if answers else None,
        "behaviour": None,
        "emotions": None,
        "preferences": None,
        "reasoning": None,
    }
