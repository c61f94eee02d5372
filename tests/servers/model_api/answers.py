"""A reply as it goes over the wire: one JSON body, or the events of a stream with its quirks."""

import json
import re
import time
from base64 import b64encode
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from uuid import uuid4

from memory.behaviors.steps import ToolCall
from tests.servers.model_api.faults import Fault, Quirk
from tests.servers.model_api.requests import ChatRequest, EmbeddingsRequest, Reply
from tests.servers.word_vectors import embed

Json = dict[str, object]

PIECES = re.compile(r"\s*\S{1,12}|\s+")  # about a token each; joined they are the text
_WHOLE_CALLS = {Quirk.NO_INDEX, Quirk.SAME_INDEX}


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as they would be billed."""

    prompt: int
    completion: int  # reasoning included
    cached: int = 0
    reasoning: int = 0

    def as_json(self, faults: Collection[Fault] = ()) -> Json:
        """Return the `usage` object of chat completions."""
        counts: Json = {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "total_tokens": self.prompt + self.completion,
        }
        if Quirk.BARE_USAGE in faults:
            return counts
        return {
            **counts,
            "prompt_tokens_details": {"cached_tokens": self.cached, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": self.reasoning, "audio_tokens": 0},
        }


def bill(reply: Reply, prompt_tokens: int, count: Callable[[str], int]) -> Usage:
    """Count what the model would have read and written."""
    calls = sum(count(call.name + call.arguments) for call in reply.tool_calls)
    reasoning = count(reply.thoughts)
    return Usage(
        prompt=prompt_tokens,
        completion=count(reply.text) + calls + reasoning,
        cached=min(reply.cached_tokens, prompt_tokens),
        reasoning=reasoning,
    )


def completion(
    chat: ChatRequest, reply: Reply, usage: Usage, faults: Collection[Fault] = ()
) -> Json:
    """Return the body of an answer that is not streamed."""
    message: Json = {
        "role": "assistant",
        "content": reply.text or None,
        "refusal": reply.refusal or None,
    }
    if reply.tool_calls:
        message["tool_calls"] = [_call(call, call.arguments) for call in reply.tool_calls]
    elif not reply.text and not reply.refusal:
        message["content"] = ""
    choice = {
        "index": 0,
        "message": message,
        "logprobs": None,
        "finish_reason": _finish_reason(reply),
    }
    envelope = _envelope(chat, "chat.completion")
    return {**envelope, "choices": [choice], "usage": usage.as_json(faults)}


def stream(
    chat: ChatRequest, reply: Reply, usage: Usage, faults: Collection[Fault]
) -> tuple[list[bytes], list[bytes]]:
    """Return the events of a streamed answer: those that say it, and those that end it."""
    envelope = _envelope(chat, "chat.completion.chunk")
    if chat.include_usage:
        envelope["usage"] = None
    if Quirk.NO_ID in faults:
        del envelope["id"], envelope["object"]

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish_reason}
        if Quirk.NO_INDEX in faults:
            del choice["index"]
        return {**envelope, "choices": [choice]}

    said = [chunk(delta) for delta in _deltas(reply, faults)]
    if Quirk.EMPTY_FIRST_CHUNK in faults:
        said.insert(0, {**envelope, "choices": [], "prompt_filter_results": []})
    ending = [chunk({}, _finish_reason(reply))]
    if chat.include_usage and Quirk.NO_USAGE not in faults:
        ending.append({**envelope, "choices": [], "usage": usage.as_json(faults)})
    done = [] if Quirk.NO_DONE in faults else [event(b"[DONE]", faults)]
    return _events(said, faults), [*_events(ending, faults), *done]


def embeddings(asked: EmbeddingsRequest, dimensions: int, tokens: int) -> Json:
    """Return the body with the vectors of the texts, in their order."""
    vectors = [embed(text, dimensions) for text in asked.texts]
    as_text = asked.encoding_format == "base64"
    data = [
        {
            "object": "embedding",
            "index": index,
            "embedding": b64encode(vector.tobytes()).decode() if as_text else vector.tolist(),
        }
        for index, vector in enumerate(vectors)
    ]
    usage = {"prompt_tokens": tokens, "total_tokens": tokens}
    return {"object": "list", "data": data, "model": asked.model, "usage": usage}


def models(names: Iterable[str], fields: Mapping[str, object]) -> Json:
    """Return the list of models, each with the same `fields`."""
    data = [{"id": name, "object": "model", "created": 0, **fields} for name in sorted(names)]
    return {"object": "list", "data": data}


def event(payload: bytes, faults: Collection[Fault] = (), name: str = "") -> bytes:
    """Return one server-sent event."""
    end = b"\r\n" if Quirk.CRLF in faults else b"\n"
    comment = b": PROCESSING" + end + end if Quirk.COMMENTS in faults else b""
    named = f"event: {name}".encode() + end if name else b""
    return comment + named + b"data: " + payload + end + end


def _events(chunks: list[Json], faults: Collection[Fault]) -> list[bytes]:
    # All beyond ASCII is escaped, half an emoji too, as by servers written in Python.
    texts = (json.dumps(chunk, separators=(",", ":")) for chunk in chunks)
    return [event(text.encode(), faults) for text in texts]


def _deltas(reply: Reply, faults: Collection[Fault]) -> Iterator[Json]:
    yield {"role": "assistant", "content": None if reply.tool_calls else "", "refusal": None}
    if Quirk.REASONING in faults:
        yield {"reasoning_content": "Let me think about that."}
    for piece in PIECES.findall(reply.text):
        yield {"content": piece}
    for index, call in enumerate(reply.tool_calls):
        if not _WHOLE_CALLS.isdisjoint(faults):
            placed = {} if Quirk.NO_INDEX in faults else {"index": 0}
            yield {"tool_calls": [{**placed, **_call(call, call.arguments)}]}
            continue
        yield {"tool_calls": [{"index": index, **_call(call, "")}]}
        for piece in PIECES.findall(call.arguments):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _call(call: ToolCall, arguments: str) -> Json:
    function = {"name": call.name, "arguments": arguments}
    return {"id": call.id, "type": "function", "function": function}


def _finish_reason(reply: Reply) -> str:
    return reply.finish_reason or ("tool_calls" if reply.tool_calls else "stop")


def _envelope(chat: ChatRequest, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{uuid4().hex}",
        "object": kind,
        "created": int(time.time()),
        "model": chat.model,
    }
