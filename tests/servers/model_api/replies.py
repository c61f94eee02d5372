"""Replies of the model, the port that gives them, and a scripted model."""

import asyncio
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol
from uuid import uuid4

import orjson

from memory.behaviors.steps import ToolCall
from tests.servers.model_api.requests import ChatRequest


@dataclass(frozen=True, slots=True)
class Reply:
    """One answer of the model; a `refusal` replaces the text.

    An empty `finish_reason` means the usual one: `tool_calls` with calls, else `stop`. `length`,
    `content_filter` and `failed` are expressed in the form of the requested API. `thoughts` are
    billed as reasoning tokens; chat completions do not show them, Responses as a reasoning item.

    The answer begins `delay_s` after the request and not before `gate` is set; a streamed one is
    silent for `thinking_s` after its first event and waits `chunk_delay_s` before each other one.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: str = ""
    delay_s: float = 0
    chunk_delay_s: float = 0
    refusal: str = ""
    gate: asyncio.Event | None = None
    thoughts: str = ""
    thinking_s: float = 0
    cached_tokens: int = 0


class Responder(Protocol):
    """A model that answers requests."""

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the answer to a valid request."""
        ...


def tool_call(name: str, **arguments: object) -> ToolCall:
    """Return a call with an id of its own."""
    return ToolCall(f"call_{uuid4().hex}", name, orjson.dumps(arguments).decode())


class Scripted:
    """Answers by rules, then from a queue, then always the same.

    `log` holds each request with its answer. A rule gives its replies one after the other and
    keeps giving the last; of the rules that fit, the one written first answers. A string is
    a reply with that text.
    """

    def __init__(self, otherwise: Reply | str = "All right.") -> None:
        self.log: list[tuple[ChatRequest, Reply]] = []
        self._otherwise = _reply(otherwise)
        self._rules: list[tuple[Callable[[ChatRequest], bool], deque[Reply]]] = []
        self._queue: deque[Reply] = deque()

    def on(self, when: str | Callable[[ChatRequest], bool], *replies: Reply | str) -> None:
        """Answer so if the person's last text contains `when`, or if `when` returns true."""
        fits = (lambda chat: when in chat.asked) if isinstance(when, str) else when
        self._rules.append((fits, deque(map(_reply, replies))))

    def then(self, *replies: Reply | str) -> None:
        """Queue replies for requests without a matching rule; each is given once, in order."""
        self._queue.extend(map(_reply, replies))

    async def respond(self, request: ChatRequest) -> Reply:
        reply = self._scripted(request)
        self.log.append((request, reply))
        return reply

    def _scripted(self, request: ChatRequest) -> Reply:
        for fits, replies in self._rules:
            if fits(request):
                return replies.popleft() if len(replies) > 1 else replies[0]
        return self._queue.popleft() if self._queue else self._otherwise


def _reply(reply: Reply | str) -> Reply:
    return Reply(reply) if isinstance(reply, str) else reply
