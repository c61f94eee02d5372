"""A reply in the form of the Responses API: one JSON body, or the events of a stream."""

import json
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from memory.behaviors.steps import ToolCall
from tests.servers.model_api.answers import PIECES, Usage, event
from tests.servers.model_api.faults import Fault, Quirk
from tests.servers.model_api.requests import ChatRequest, Reply
from tests.servers.model_api.responses_bodies import encrypted

Json = dict[str, Any]

_STATUS = {"length": "incomplete", "content_filter": "incomplete", "failed": "failed"}
_REASONS = {"length": "max_output_tokens", "content_filter": "content_filter"}
_FAILURE = {
    "code": "server_error",
    "message": "The server had an error while processing your request. Sorry about that!",
}


@dataclass(frozen=True, slots=True)
class Answered:
    """A reply to one request; `server` is the name of the server that encrypts its thoughts."""

    asked: ChatRequest
    reply: Reply
    usage: Usage
    server: str = ""
    faults: Collection[Fault] = ()

    def output(self) -> list[Json]:
        """Return the finished entries: thoughts, the message, the calls."""
        reply = self.reply
        entries = [self._reasoning()] if reply.thoughts or Quirk.REASONING in self.faults else []
        if reply.text or reply.refusal or not (reply.tool_calls or reply.finish_reason):
            entries.append(self._message())
        return [*entries, *map(_call, reply.tool_calls)]

    def envelope(self, response_id: str) -> Json:
        """Return the response object before the first entry."""
        raw: Json = dict(self.asked.raw)
        return {
            "id": response_id,
            "object": "response",
            "created_at": int(time.time()),
            "status": "in_progress",
            "error": None,
            "incomplete_details": None,
            "instructions": None,
            "metadata": {},
            "model": self.asked.model,
            "output": [],
            "parallel_tool_calls": raw.get("parallel_tool_calls", True),
            "temperature": raw.get("temperature", 1.0),
            "tool_choice": raw.get("tool_choice") or "auto",
            "tools": raw.get("tools") or [],
            "top_p": raw.get("top_p", 1.0),
            "usage": None,
        }

    def end(self, envelope: Json, output: list[Json]) -> Json:
        """Return the response object at the end of the answer."""
        status = _STATUS.get(self.reply.finish_reason, "completed")
        reason = _REASONS.get(self.reply.finish_reason)
        usage = None if Quirk.NO_USAGE in self.faults else usage_as_json(self.usage)
        return {
            **envelope,
            "status": status,
            "error": _FAILURE if status == "failed" else None,
            "incomplete_details": {"reason": reason} if reason else None,
            "output": output,
            "usage": usage,
        }

    def _reasoning(self) -> Json:
        reasoning_id = f"rs_{uuid4().hex}"
        entry: Json = {"type": "reasoning", "id": reasoning_id, "summary": []}
        if Quirk.REASONING in self.faults:
            thoughts = self.reply.thoughts or "Let me think about that."
            entry["content"] = [{"type": "reasoning_text", "text": thoughts}]
        raw: Json = dict(self.asked.raw)
        if "reasoning.encrypted_content" in (raw.get("include") or ()):
            entry["encrypted_content"] = encrypted(reasoning_id, self.server)
        return entry

    def _message(self) -> Json:
        refusal = self.reply.refusal
        said: Json = {"type": "refusal", "refusal": refusal}
        if not refusal:
            said = {
                "type": "output_text",
                "text": self.reply.text,
                "annotations": [],
                "logprobs": [],
            }
        return {
            "type": "message",
            "id": f"msg_{uuid4().hex}",
            "role": "assistant",
            "status": "incomplete" if self.reply.finish_reason in _REASONS else "completed",
            "content": [said],
        }


def usage_as_json(usage: Usage) -> Json:
    """Return the `usage` object of the Responses API."""
    return {
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }


def response(answered: Answered) -> Json:
    """Return the body of an answer that is not streamed."""
    envelope = answered.envelope(f"resp_{uuid4().hex}")
    return answered.end(envelope, answered.output())


def response_stream(answered: Answered) -> tuple[list[bytes], list[bytes]]:
    """Return the events of a streamed answer: those that say it, and the one that ends it."""
    envelope = answered.envelope(f"resp_{uuid4().hex}")
    output = answered.output()
    said = [
        {"type": "response.created", "response": envelope},
        {"type": "response.in_progress", "response": envelope},
    ]
    for at, entry in enumerate(output):
        said += _entry_events(at, entry)
    ended = answered.end(envelope, output)
    numbered = [
        _event({**each, "sequence_number": number}, answered.faults)
        for number, each in enumerate(
            [*said, {"type": f"response.{ended['status']}", "response": ended}]
        )
    ]
    return numbered[:-1], numbered[-1:]


def failed_event(message: str) -> bytes:
    """Return the event that ends a stream when the server fails."""
    return _event(
        {
            "type": "error",
            "code": "server_error",
            "message": message,
            "param": None,
            "sequence_number": 0,
        }
    )


def _call(call: ToolCall) -> Json:
    return {
        "type": "function_call",
        "id": f"fc_{uuid4().hex}",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
        "status": "completed",
    }


def _event(payload: Json, faults: Collection[Fault] = ()) -> bytes:
    text = json.dumps(payload, separators=(",", ":"))
    return event(text.encode(), faults, str(payload["type"]))


def _entry_events(at: int, entry: Json) -> Iterator[Json]:
    """Yield an entry's beginning, its pieces and its end."""
    position = {"output_index": at, "item_id": entry["id"]}
    begun = {**entry, "status": "in_progress"}
    match entry["type"]:
        case "function_call":
            begun["arguments"] = ""
            pieces = _arguments_events(entry, position)
        case "message":
            begun["content"] = []
            pieces = _content_events(entry, position)
        case _:
            begun = {name: entry[name] for name in ("type", "id", "summary")}
            pieces = _thoughts_events(entry, position)
    yield {"type": "response.output_item.added", "output_index": at, "item": begun}
    yield from pieces
    yield {"type": "response.output_item.done", "output_index": at, "item": entry}


def _arguments_events(entry: Json, position: Json) -> Iterator[Json]:
    kind = "response.function_call_arguments"
    arguments = str(entry["arguments"])
    for piece in PIECES.findall(arguments):
        yield {"type": f"{kind}.delta", **position, "delta": piece}
    yield {"type": f"{kind}.done", **position, "name": entry["name"], "arguments": arguments}


def _content_events(entry: Json, position: Json) -> Iterator[Json]:
    [part] = entry["content"]
    position = {**position, "content_index": 0}
    name = "refusal" if part["type"] == "refusal" else "text"
    kind = "response.refusal" if name == "refusal" else "response.output_text"
    more: Json = {} if name == "refusal" else {"logprobs": []}
    yield {"type": "response.content_part.added", **position, "part": {**part, name: ""}}
    for piece in PIECES.findall(part[name]):
        yield {"type": f"{kind}.delta", **position, "delta": piece, **more}
    yield {"type": f"{kind}.done", **position, name: part[name], **more}
    yield {"type": "response.content_part.done", **position, "part": part}


def _thoughts_events(entry: Json, position: Json) -> Iterator[Json]:
    """Show thoughts as servers of open models do; OpenAI's are encrypted."""
    for part in entry.get("content", ()):
        shown = {**position, "content_index": 0}
        yield {"type": "response.reasoning_text.delta", **shown, "delta": part["text"]}
        yield {"type": "response.reasoning_text.done", **shown, "text": part["text"]}
