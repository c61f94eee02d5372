"""Model faults of the `llmock` package, which breaks its answers and judges its client.

It cannot distinguish texts. So these days have one text at a time, and llmock gets its answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import httpx2

from tests.lab.faults.fault import Fault, Strike
from tests.lab.faults.scene import Scene, Stage
from tests.llmock import llmock_served

Behavior = Mapping[str, object]

_MORE_TEXT = " word" * 40
"""It makes an answer so long that llmock notices if its client disconnects before the end."""

_ASKED = {"path": "*/chat/completions"}

_SURVIVED: Sequence[Behavior] = (
    {"type": "fail", "status": 429, "retry_after": 0.2},
    {"type": "fail", "status": 500},
    {"type": "fail", "status": 503, "retry_after": 0.2},
    {"type": "stream_fault", "kind": "disconnect", "after_chunks": 2},
    {"type": "stream_fault", "kind": "truncate", "after_chunks": 2},
    {"type": "stream_fault", "kind": "malformed", "after_chunks": 2},
    {"type": "stream_fault", "kind": "stall", "after_chunks": 2, "stall_seconds": 10},
    {"type": "tool_fault", "kind": "malformed_arguments"},
    {"type": "tool_fault", "kind": "unknown_tool"},
)
_APOLOGISED: Sequence[Behavior] = (
    {"type": "fail", "status": 400},
    {"type": "fail", "status": 401},
    {"type": "fail", "status": 429, "retry_after": 0.2, "times": None},
    {"type": "fail", "status": 503, "times": None},
    {"type": "stream_fault", "kind": "disconnect", "after_chunks": 2, "times": None},
    {
        "type": "stream_fault",
        "kind": "stall",
        "after_chunks": 2,
        "stall_seconds": 10,
        "times": None,
    },
)


def _one_by_one(behaviors: Sequence[Behavior]) -> Strike:
    """Return a strike that lets a person write one text while the round's behavior happens."""

    async def strike(scene: Scene) -> None:
        behavior = {"match": _ASKED, **behaviors[scene.round % len(behaviors)]}
        server = scene.rig.environment["OPENAI_BASE_URL"].removesuffix("/v1")
        async with httpx2.AsyncClient(base_url=f"{server}/_llmock", trust_env=False) as llmock:
            await llmock.post("/reset")
            reply = {"type": "reply", "text": scene.day.next_marker + _MORE_TEXT, "times": None}
            answer = await llmock.post("/scenario", json={"behaviors": [behavior, reply]})
            assert answer.status_code == 201, answer.text
            await scene.talk(1)
            said = scene.day.lines[-1].message
            await said.chat.wait_for_reply(after=said, timeout_s=60)
            verdict = (await llmock.get("/verdict")).json()
            pending = (await llmock.get("/scenario")).json()["pending"]
        # llmock does not count a broken tool call as a fault, but removes it from the pending ones.
        assert verdict["faults_injected"] or len(pending) == 1
        assert verdict["findings"] == []

    return strike


@contextmanager
def _llmock() -> Iterator[Mapping[str, object]]:
    with llmock_served() as url:
        yield {"openai_base_url": f"{url}/v1"}


_STAGE = Stage(settings={"model_timeout_s": 4}, companion=_llmock)

FAULTS = (
    Fault(
        "llmock: broken once",
        _one_by_one(_SURVIVED),
        _STAGE,
        rounds=len(_SURVIVED),
        sample=4,
        texts=0,
    ),
    Fault(
        "llmock: broken for good",
        _one_by_one(_APOLOGISED),
        _STAGE,
        rounds=len(_APOLOGISED),
        sample=2,
        texts=0,
        closings=frozenset({"apologised"}),
    ),
)
