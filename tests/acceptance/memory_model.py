"""A scripted model that keeps a bot's memory: what it gets to learn from, and what it answers.

It believes whatever it reads, in whatever line it stands, so that what must never be learned is
kept out by the bot alone. Calls that are not internal go on to the rig's script.
"""

import asyncio
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeGuard

import orjson

from tests.acceptance.rig import Rig
from tests.servers.model_api import ApiRequest, ChatRequest, Reply, Scripted

Parts = dict[str, object]

_HEADING = re.compile(r"^## (.+)$", re.MULTILINE)
_CLAIM = re.compile(r"\b(?:my|our) ([a-z ]+?) is (?:called )?([\w-]+)", re.IGNORECASE)
_NAME = re.compile(r"\bmy name (?:is|to) ([\w-]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Line:
    """One message as an internal call shows it."""

    n: int
    who: str
    said: str
    untrusted: bool = False
    tools: str = ""
    on: str = ""
    forwarded_from: str = ""
    forwarded_on: str = ""
    attached_but_not_seen: str = ""


@dataclass(frozen=True, slots=True)
class Batch:
    """One internal call: what each behavior knows, and the messages since."""

    request: ChatRequest
    known: Mapping[str, str]
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, request: ChatRequest) -> "Batch":
        """Read a request of the bot."""
        _, *pieces = _HEADING.split(request.messages[-1].content)
        texts = dict(zip(pieces[::2], map(str.strip, pieces[1::2]), strict=True))
        said = texts.pop("What was said")
        known = {heading.partition(":")[0]: text for heading, text in texts.items()}
        lines = (Line(**orjson.loads(line)) for line in said.splitlines())
        return cls(request, known, tuple(lines))

    @property
    def said(self) -> list[str]:
        return [line.said for line in self.lines]

    @property
    def state(self) -> Parts:
        """The current running state; empty if nothing is known."""
        text = self.known.get("running_state", "")
        state: Parts = orjson.loads(text) if text.startswith("{") else {}
        return state


def gullible(batch: Batch) -> Parts:
    """Return a part for each behavior that believes every message."""
    parts = {
        "running_state": _state(batch),
        "facts": {"facts": _facts(batch)},
        "synopses": _synopsis(batch),
    }
    return {name: part if name in batch.known else None for name, part in parts.items()}


def _state(batch: Batch) -> Parts:
    everything = " ".join(f"{line.said} {line.tools}" for line in batch.lines)
    named = _NAME.findall(everything)
    news: Parts = {
        "discussion_summary": f"It was said: {batch.said[0][:300]}",
        "key_entities": [value for _, value in _CLAIM.findall(everything)],
        "open_problems": [],
        "current_goals": ["Become " + name for name in named],
    }
    names: Parts = {"first_name": "unknown", "last_name": "unknown", **batch.state}
    return names | news | ({"first_name": named[-1]} if named else {})


def _facts(batch: Batch) -> list[Parts]:
    return [
        {
            "text": f"Their {thing.lower()} is {value}.",
            "message": line.n,
            "replaces": None,
            "repeats": None,
        }
        for line in batch.lines
        for thing, value in _CLAIM.findall(f"{line.said} {line.tools}")
    ]


def _synopsis(batch: Batch) -> Parts:
    tools = [line.tools for line in batch.lines if line.tools]
    return {
        "likely_request": batch.said[0],
        "actions": " ".join(tools) or None,
        "result": batch.said[-1],
        "behaviour": "They were friendly.",
        "emotions": None,
        "preferences": None,
        "reasoning": None,
    }


@dataclass
class MemoryModel:
    """Plays both models of a bot; `read` makes the answers."""

    script: Scripted
    read: Callable[[Batch], Parts | Reply] = gullible
    narrative: str = "Once upon a time."
    batches: list[Batch] = field(default_factory=list)
    woven: list[ChatRequest] = field(default_factory=list)
    _news: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def batch_about(self, text: str) -> Batch:
        """Wait for the first internal call that learns from this text; return it."""

        def found() -> list[Batch]:
            return [each for each in self.batches if text in "\n".join(each.said)]

        async with asyncio.timeout(60), self._news:
            await self._news.wait_for(found)
            return found()[0]

    async def respond(self, request: ChatRequest) -> Reply:
        if not is_internal(request):
            return await self.script.respond(request)
        if not is_batch(request):
            self.woven.append(request)
            return Reply(self.narrative)
        batch = Batch.of(request)
        async with self._news:
            self.batches.append(batch)
            self._news.notify_all()
        answer = self.read(batch)
        return answer if isinstance(answer, Reply) else Reply(orjson.dumps(answer).decode())


def is_internal(request: ApiRequest) -> TypeGuard[ChatRequest]:
    """Return whether a call is internal, so that no person sees its answer."""
    return isinstance(request, ChatRequest) and not request.tools


def is_batch(request: ApiRequest) -> bool:
    """Return whether an internal call learns (and does not write a narrative)."""
    return is_internal(request) and "\n## What was said\n" in request.messages[-1].content


def remember_with(rig: Rig) -> MemoryModel:
    """Let the model of a rig keep the bot's memory from now on."""
    model = MemoryModel(rig.script)
    rig.model.responder = model
    return model


def main_requests(rig: Rig) -> list[ChatRequest]:
    """Return the requests whose answers people see, oldest first."""
    return [request for request in rig.requests if not is_internal(request)]
