"""The model of the month, a process of its own: it answers with the marker of the question.

    python -m tests.lab.month.model PORT

It asks for a reminder if it is told to, and its internal answers repeat the word that only one
person says, so that something of each person is learned. `/stats` tells what it was asked.
"""

import asyncio
import re
import sys
from collections.abc import Mapping
from typing import Any

import orjson

from tests.lab.bots import empty
from tests.lab.lean_http import CHUNKED, LAST_CHUNK, answer, chunk, serve
from tests.lab.lean_model import LeanModel, LogNormal

MARKER = re.compile(r"\bm\d+\b")
WORD = re.compile(r"\bzq\d+x\b")
REMINDER = re.compile(r"\bzq\d+x r\d+\b")
_CHARS_A_TOKEN = 4


class MonthModel(LeanModel):
    """Answers at once, and counts tokens by characters."""

    def __init__(self) -> None:
        super().__init__()
        self.stats = {"answers": 0, "internal": 0, "tokens_in": 0, "tokens_out": 0, "vectors": 0}

    def handle(self, path: str, body: bytes, transport: asyncio.Transport) -> None:
        """Answer a request."""
        if path.endswith("/chat/completions"):
            self.stats["tokens_in"] += len(body) // _CHARS_A_TOKEN
            self._complete(orjson.loads(body), body.decode(), transport)
        elif path.endswith("/stats"):
            answer(transport, orjson.dumps(self.stats))
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
            choice = {"message": {"role": "assistant", "content": said}, "finish_reason": "stop"}
            answer(transport, orjson.dumps(_ENVELOPE | {"choices": [{"index": 0} | choice]}))
            return
        self.stats["answers"] += 1
        message, before = asked["messages"][-1], asked["messages"]
        wish = REMINDER.search(_last_paragraph(message)) if message["role"] == "user" else None
        delta: dict[str, object] = {"role": "assistant"}
        if wish and "Remind me" in _last_paragraph(message):
            arguments = orjson.dumps({"text": wish[0], "in_minutes": 1}).decode()
            function = {"name": "set_reminder", "arguments": arguments}
            delta["tool_calls"] = [
                {"index": 0, "id": "c1", "type": "function", "function": function}
            ]
        else:
            user = next(each for each in reversed(before) if each["role"] == "user")
            markers = MARKER.findall(_last_paragraph(user))
            delta["content"] = f"Heard {' '.join(markers)}."
            self._tell(str(delta["content"]))
        reason = "tool_calls" if "tool_calls" in delta else "stop"
        events: list[dict[str, Any]] = [
            {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]},
            {"choices": [], "usage": _USAGE},
        ]
        payloads = [orjson.dumps(_CHUNK | event) for event in events]
        if not transport.is_closing():
            written = b"".join(chunk(b"data: %b\n\n" % each) for each in [*payloads, b"[DONE]"])
            transport.write(CHUNKED + written + LAST_CHUNK)

    def _tell(self, said: str) -> None:
        self.stats["tokens_out"] += len(said) // _CHARS_A_TOKEN


_USAGE = {"prompt_tokens": 1_000, "completion_tokens": 20, "total_tokens": 1_020}
_ENVELOPE = {"id": "month", "created": 0, "model": "gpt-load", "usage": _USAGE}
_CHUNK = {"id": "month", "created": 0, "model": "gpt-load", "object": "chat.completion.chunk"}


def _last_paragraph(message: Mapping[str, Any]) -> str:
    content = message["content"]
    if not isinstance(content, str):
        content = "\n\n".join(part.get("text", "") for part in content)
    return str(content).rstrip().rpartition("\n\n")[2]


def _filled(schema: Mapping[str, Any], word: str) -> object:
    """Return the emptiest value of a schema, but with the word for each text that is asked for."""
    match schema:
        case {"properties": dict(properties)}:
            return {name: _filled(inner, word) for name, inner in properties.items()}
        case {"type": "string"} if "enum" not in schema:
            return f"They speak of {word}." if word else ""
        case _:
            return empty(schema)


async def main() -> None:
    """Serve until killed."""
    server = await serve(MonthModel().handle, int(sys.argv[1]))
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
