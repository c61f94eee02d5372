"""The model of the month, a process of its own: it answers with the marker of the question.

    python -m tests.lab.month.model PORT

It asks for a reminder or a task if it is told to, and its internal answers repeat the word that
only one person says, so that something of each person is learned. `/stats` tells what it was asked.
"""

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from tests.lab.lean_http import answer, run
from tests.lab.lean_model import LeanModel, LogNormal, completion, events
from tests.lab.plain_model import empty

MARKER = re.compile(r"\bm\d+\b")
WORD = re.compile(r"zq\d+x\d+z")
REMINDER = re.compile(r"zq\d+x\d+z r\d+\b")
_FIRST = {"role": "assistant"}
_CHARS_A_TOKEN = 4


class MonthModel(LeanModel):
    """Answers at once, and counts tokens by characters."""

    def __init__(self) -> None:
        super().__init__()
        asked = ("answers", "internal", "tokens_in", "tokens_out", "vectors", "pictures", "sounds")
        self.stats = dict.fromkeys(asked, 0)

    def handle(self, path: str, body: bytes, transport: asyncio.Transport) -> None:
        if path.endswith("/chat/completions"):
            self.stats["tokens_in"] += len(body) // _CHARS_A_TOKEN
            self._complete(orjson.loads(body), body.decode(), transport)
        elif path.endswith("/stats"):
            answer(transport, orjson.dumps(self.stats))
        elif path.endswith("/transcriptions"):
            self.stats["sounds"] += 1
            file = body.decode()
            said = f"The boat {WORD.findall(file)[0]} has a new sail. {MARKER.findall(file)[0]}?"
            answer(transport, orjson.dumps({"text": said}))
        else:
            self.stats["vectors"] += path.endswith("/embeddings")
            super().handle(path, body, transport)

    def _wait_s(self, _: LogNormal) -> float:
        return 0

    def _complete(self, asked: Mapping[str, Any], raw: str, transport: asyncio.Transport) -> None:
        if not asked.get("stream"):
            self.stats["internal"] += 1
            words = WORD.findall(raw)
            schema = asked["response_format"]["json_schema"]["schema"]
            said = orjson.dumps(_filled(schema, words[-1] if words else "")).decode()
            self._tell(said)
            answer(transport, completion(said))
            return
        self.stats["answers"] += 1
        self.stats["pictures"] += '"image_url":' in raw
        said = _said(next(each for each in reversed(asked["messages"]) if each["role"] == "user"))
        wish, is_due = REMINDER.search(said), "⏰" in said  # in a group a name comes first
        if wish and not is_due and asked["messages"][-1]["role"] == "user":
            arguments = {"text": wish[0], "in_minutes": 1, "is_task": "Do this" in said}
            function = {"name": "set_reminder", "arguments": orjson.dumps(arguments).decode()}
            called = {"index": 0, "id": "c1", "type": "function", "function": function}
            written = events(_FIRST, {"tool_calls": [called]}, reason="tool_calls")
        else:
            heard = f"Heard {' '.join(MARKER.findall(said))}."
            text = f"Did {wish[0]} ." if wish and is_due else heard
            self._tell(text)
            written = events(_FIRST, {"content": text})
        if not transport.is_closing():
            transport.write(b"".join(written))

    def _tell(self, said: str) -> None:
        self.stats["tokens_out"] += len(said) // _CHARS_A_TOKEN


def _said(message: Mapping[str, Any]) -> str:
    """Return what the person says, without the memory before it."""
    content = message["content"]
    if not isinstance(content, str):
        content = "\n\n".join(part.get("text", "") for part in content)
    return str(content).rpartition("</memory>")[2].strip()


def _filled(schema: Mapping[str, Any], word: str) -> object:
    """Return the emptiest value of a schema, but with the word for each text that is asked for."""
    match schema:
        case {"properties": dict(properties)}:
            return {name: _filled(inner, word) for name, inner in properties.items()}
        case {"type": "string"} if "enum" not in schema:
            return f"They speak of {word}." if word else ""
        case _:
            return empty(schema)


if __name__ == "__main__":
    asyncio.run(run(MonthModel().handle, int(sys.argv[1])))
