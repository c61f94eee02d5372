"""Faults between the bot and its model: refusals, silence, and answers that break off.

After a single fault the bot asks again and answers. During a lasting fault it apologises, and
answers the next text.
"""

from collections.abc import Mapping
from functools import partial

from tests.acceptance.scripted_day import markers
from tests.lab.faults.fault import Fault
from tests.lab.faults.scene import Scene, Stage
from tests.lab.faults.verdict import Closing, apologies_in
from tests.servers.model_api import (
    ApiError,
    Break,
    Call,
    ChatRequest,
    StreamBreak,
    is_embeddings,
    rate_limited,
    server_error,
)

AnyFault = ApiError | Break | StreamBreak

_TIMEOUT_S = 6
"""The timeout of one answer; after half of it without a byte the model is asked again."""

_APOLOGISED: frozenset[Closing] = frozenset({"apologised"})
_TOGETHER = 4
_PATIENCE_S = 30


async def _once(scene: Scene, fault: AnyFault) -> None:
    """Strike the next request for an answer; it is over when the bot asks again."""
    before = len(scene.model.log.calls)
    scene.model.faults.add(fault)
    await scene.talk(1)
    hit = await scene.model.wait_for(
        lambda call: fault in call.faults and call in scene.model.log.calls[before:],
        timeout_s=_PATIENCE_S,
    )
    # A message that came meanwhile may be asked together with it.
    await scene.model.wait_for(
        lambda call: not call.faults and _words(hit) in _words(call), timeout_s=_PATIENCE_S
    )


async def _lasting(scene: Scene, fault: AnyFault) -> None:
    """Strike every request for an answer, until the first apology."""
    before, asked = _apologies(scene), len(scene.model.log.calls)
    scene.model.faults.add(fault, times=None)
    await scene.talk(_TOGETHER)
    await scene.telegram.wait_for(lambda: _apologies(scene) > before, _PATIENCE_S)
    scene.model.faults.clear()
    for call in scene.model.log.calls[asked:]:
        if fault in call.faults and isinstance(call.request, ChatRequest):
            # Earlier texts without a reply come before it.
            scene.hit.update(markers(call.request.asked.rpartition("\n\n")[2]))


async def _without_vectors(scene: Scene, fault: AnyFault) -> None:
    """Strike every request for vectors, until two were hit."""

    def is_hit(call: Call) -> bool:
        return fault in call.faults

    before = sum(map(is_hit, scene.model.log.calls))
    scene.model.faults.add(fault, times=None, when=is_embeddings)
    await scene.talk(_TOGETHER)
    await scene.model.wait_for(is_hit, count=before + 2)
    scene.model.faults.clear()


def _words(call: Call) -> str:
    """Return what is asked, "" for another request than for an answer."""
    return call.request.asked if isinstance(call.request, ChatRequest) else ""


def _apologies(scene: Scene) -> int:
    return sum(map(apologies_in, scene.day.chats))


async def _away(scene: Scene) -> None:
    """Stop the model's server until a bot has given up an answer."""
    [bot] = scene.bots
    seen = len(bot.log)
    await scene.model.stop()
    await scene.talk(_TOGETHER)
    # Answers to an earlier fault may still be given up for another reason.
    reason = "ModelUnavailable"
    await bot.wait_for_log("no answer", after=seen, timeout_s=_PATIENCE_S, reason=reason)
    scene.note_unanswered()
    await scene.model.start()


_LASTING: Mapping[str, AnyFault] = {
    "429": rate_limited(0.2),
    "500": server_error(),
    "reset": Break.DROP,
    "silence": Break.HANG,
    "stream cut": StreamBreak.CUT,
    "stream stalled": StreamBreak.STALL,
    "malformed chunk": StreamBreak.MALFORMED,
    "a web page instead": Break.HTML,
}
_ONCE: Mapping[str, AnyFault] = {
    **{name: fault for name, fault in _LASTING.items() if fault is not Break.HTML},
    "stream reset": StreamBreak.DROP,
    "error in the stream": StreamBreak.ERROR,
    "chunk that is no text": StreamBreak.GARBLED,
    "chunk of another shape": StreamBreak.MISSHAPEN,
}
"""A web page is only a lasting fault: after it the bot does not ask again."""


def _stage_of(fault: AnyFault) -> Stage:
    """Return a stage with a short model timeout if the fault is silence."""
    is_silent = fault in (Break.HANG, StreamBreak.STALL)
    return Stage(settings={"model_timeout_s": _TIMEOUT_S} if is_silent else {})


FAULTS = (
    *(
        Fault(f"model: {name}", partial(_once, fault=fault), _stage_of(fault))
        for name, fault in _ONCE.items()
    ),
    *(
        Fault(
            f"model: {name}, lasting",
            partial(_lasting, fault=fault),
            _stage_of(fault),
            rounds=2,
            closings=_APOLOGISED,
            turns=0,
        )
        for name, fault in _LASTING.items()
    ),
    Fault("model away", _away, closings=_APOLOGISED, turns=0),
    *(
        Fault(f"embeddings: {name}", partial(_without_vectors, fault=_ONCE[name]))
        for name in ("429", "500", "reset", "silence")
    ),
)
