"""A model for load tests: it needs little CPU, and is as slow as a real one. Its own process.

    python -m tests.lab.lean_model PORT

Every request gets the same answer, one token at a time. A request for JSON gets empty values, and
vectors are hashed words. It does not check requests. The local model of the tests does that, but
needs more CPU time for an answer than the bot.

The latencies are chosen, not measured. Times to the first token are log-normal: most are close
together, with a long tail. A median of 0.6 s, one in a hundred above 4 s, and 60 tokens a second
are typical of a small hosted model. All draws come from one
seed, in the order of requests.
"""

import asyncio
import base64
import math
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import orjson

from tests.lab.lean_http import CHUNKED, LAST_CHUNK, answer, chunk, run
from tests.lab.plain_model import REPLY, empty
from tests.servers.word_vectors import embed

DIMENSIONS = 512
TOKENS_A_SECOND = 60
_SEED = 6
_BYTES_A_TOKEN = 4
_P99 = 2.3263
"""Standard deviations above the mean that 99 of 100 draws of a normal distribution stay below."""


@dataclass(frozen=True, slots=True)
class LogNormal:
    """A distribution of times, by its median and its 99th percentile."""

    median_s: float
    p99_s: float

    def draw(self, random: Random) -> float:
        """Return a time in seconds."""
        sigma = math.log(self.p99_s / self.median_s) / _P99
        return random.lognormvariate(math.log(self.median_s), sigma)


FIRST_TOKEN = LogNormal(0.6, 4.0)
VECTORS = LogNormal(0.15, 1.0)


class LeanModel:
    """Answers chat completions and embeddings."""

    def __init__(self) -> None:
        self._random = Random(_SEED)
        self._answering: set[asyncio.Task[None]] = set()
        words = [f" {word}" if at else word for at, word in enumerate(REPLY.split(" "))]
        first = {"role": "assistant", "content": ""}
        self._events = events(first, *({"content": word} for word in words))

    def handle(self, path: str, body: bytes, transport: asyncio.Transport) -> None:
        """Answer a request; paths outside the API get an empty 200, as a health check."""
        if path.endswith("/chat/completions"):
            asked = orjson.loads(body)
            work = self._stream(transport) if asked.get("stream") else self._fill(asked, transport)
        elif path.endswith("/embeddings"):
            work = self._embed(orjson.loads(body), transport)
        else:
            answer(transport, b"{}")
            transport.close()
            return
        task = asyncio.create_task(work)
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _stream(self, transport: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + self._wait_s(FIRST_TOKEN)
        for event in self._events:
            # By the clock, so that a busy machine does not slow the model down.
            await asyncio.sleep(max(0.0, due - loop.time()))
            if transport.is_closing():
                return
            transport.write(event)
            due += 1 / TOKENS_A_SECOND

    async def _fill(self, asked: Mapping[str, Any], transport: asyncio.Transport) -> None:
        said = orjson.dumps(empty(asked["response_format"]["json_schema"]["schema"]))
        writing_s = len(said) / _BYTES_A_TOKEN / TOKENS_A_SECOND
        await asyncio.sleep(self._wait_s(FIRST_TOKEN) + writing_s)
        answer(transport, completion(said.decode()))

    async def _embed(self, asked: Mapping[str, Any], transport: asyncio.Transport) -> None:
        texts = [asked["input"]] if isinstance(asked["input"], str) else asked["input"]
        vectors = [base64.b64encode(embed(text, DIMENSIONS).tobytes()).decode() for text in texts]
        rows = [{"index": at, "embedding": vector} for at, vector in enumerate(vectors)]
        await asyncio.sleep(self._wait_s(VECTORS))
        body = {"object": "list", "data": rows, "model": asked["model"], "usage": _USAGE}
        answer(transport, orjson.dumps(body))

    def _wait_s(self, times: LogNormal) -> float:
        return times.draw(self._random)


_USAGE = {"prompt_tokens": 1_000, "completion_tokens": 60, "total_tokens": 1_060}
_ENVELOPE = {"id": "chatcmpl-load", "created": 0, "model": "gpt-load"}


def completion(said: str) -> bytes:
    message = {"role": "assistant", "content": said}
    choice = {"index": 0, "message": message, "finish_reason": "stop"}
    return orjson.dumps(_ENVELOPE | {"choices": [choice], "usage": _USAGE})


def events(*deltas: Mapping[str, object], reason: str = "stop") -> list[bytes]:
    """Return the pieces of a streamed answer of at least two deltas, ready to be written."""
    envelope = _ENVELOPE | {"object": "chat.completion.chunk", "usage": None}
    ends: list[tuple[Mapping[str, object], str | None]] = [*((each, None) for each in deltas)]
    chunks: list[dict[str, object]] = [
        envelope | {"choices": [{"index": 0, "delta": delta, "finish_reason": ended}]}
        for delta, ended in [*ends, ({}, reason)]
    ]
    chunks.append(envelope | {"choices": [], "usage": _USAGE})
    payloads = [*map(orjson.dumps, chunks), b"[DONE]"]
    written = [chunk(b"data: %b\n\n" % payload) for payload in payloads]
    # The headers are sent with the first token, and the closing events with the last one.
    last = len(deltas) - 1
    return [CHUNKED + written[0], *written[1:last], b"".join(written[last:]) + LAST_CHUNK]


if __name__ == "__main__":
    asyncio.run(run(LeanModel().handle, int(sys.argv[1])))
