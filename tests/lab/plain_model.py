"""A model that gives everybody the same answer."""

import json
from collections.abc import Mapping
from typing import Any

from tests.servers.model_api import ChatRequest, Reply

REPLY = " ".join(f"word{number:03}" for number in range(60))
"""The answer; it is streamed in so many pieces."""


class Model:
    """Streams the same answer to everybody; a request for JSON gets empty values.

    `pause_s` is the time between two pieces of an answer.
    """

    def __init__(self, pause_s: float = 0.0) -> None:
        self._pause_s = pause_s

    async def respond(self, request: ChatRequest) -> Reply:
        if request.response_format == "text":
            return Reply(REPLY, chunk_delay_s=self._pause_s)
        raw: Mapping[str, Any] = request.raw
        over_responses = request.api == "responses"
        asked = raw["text"]["format"] if over_responses else raw["response_format"]["json_schema"]
        return Reply(json.dumps(empty(asked["schema"])))


def empty(schema: Mapping[str, object]) -> object:
    """Return the emptiest value of a JSON schema; optional objects are filled too."""
    match schema:
        case {"properties": dict(properties)}:
            return {name: empty(inner) for name, inner in properties.items()}
        case {"anyOf": [dict(filled), *_]} if "properties" in filled:
            return empty(filled)
        case {"type": "array"}:
            return []
        case {"type": "string"}:
            return ""
        case _:
            return None
