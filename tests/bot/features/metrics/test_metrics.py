"""`/metrics` is shown to the right callers, and counts what happens."""

from dataclasses import replace
from typing import Any

import httpx2
import pytest
from starlette.routing import Router

from bot.assistant import behaviors_of
from bot.feature import Feature, Replacements
from bot.features.metrics.feature import Metrics, metrics_route
from bot.model.call import CallReport, Usage
from bot.model.model_errors import ModelUnavailable
from bot.turn.observers import PartSent
from memory.behaviors.running_state import RunningState
from memory.memory import Memory
from tests.acceptance.operator_parts import Berth
from tests.bot.features.services import services_of
from tests.settings import Settings


def value(metrics: Metrics, name: str, **labels: str) -> float | None:
    return metrics.registry.get_sample_value(name, labels)


async def page(
    memory: Memory,
    metrics: Metrics,
    token: str | None,
    *,
    host: str,
    bearer: str = "",
    forwarded: str = "",
    named: str = "localhost:80",
    on_platform: bool = False,
) -> httpx2.Response:
    app = Router([metrics_route(metrics, memory, token, on_platform=on_platform)])
    transport = httpx2.ASGITransport(app, client=(host, 5))
    headers = {"Authorization": f"Bearer {bearer}"} if bearer else {}
    headers |= {forwarded: "127.0.0.1"} if forwarded else {}
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{named}") as caller:
        return await caller.get("/metrics", headers=headers)


@pytest.mark.parametrize(
    ("token", "host", "bearer", "status"),
    [
        (None, "127.0.0.1", "", 200),
        (None, "::1", "", 200),
        (None, "203.0.113.9", "", 403),
        (None, "unknown", "", 403),
        ("s3cret", "203.0.113.9", "s3cret", 200),
        ("s3cret", "203.0.113.9", "guess", 403),
        ("s3cret", "127.0.0.1", "", 403),
    ],
)
async def test_the_page_is_for_callers_with_the_token_or_without_one_for_this_machine(
    memory: Memory, token: str | None, host: str, bearer: str, status: int
) -> None:
    answer = await page(memory, Metrics(), token, host=host, bearer=bearer)
    assert answer.status_code == status


PROXIES = "X-Forwarded-For", "X-Forwarded-Proto", "Forwarded", "X-Real-IP", "Via"
HOW = {"on_platform": True}, {"named": "evil.example"}, *({"forwarded": each} for each in PROXIES)


@pytest.mark.parametrize("how", HOW, ids=str)
async def test_through_a_proxy_or_a_browser_here_and_on_a_platform_the_page_needs_a_token(
    memory: Memory, how: dict[str, Any]
) -> None:
    """Heroku's router appends the real address to the header that the caller sent."""
    answer = await page(memory, Metrics(), None, host="127.0.0.1", **how)
    assert answer.status_code == 403
    known = await page(memory, Metrics(), "s3cret", host="127.0.0.1", bearer="s3cret", **how)
    assert known.status_code == 200


async def test_the_page_counts_round_trips_and_wake_ups(memory: Memory) -> None:
    metrics = Metrics()
    await memory.client.call("XADD", memory.keys.ready_queue, "*", "c", "c:7:0")
    text = (await page(memory, metrics, None, host="127.0.0.1")).text
    assert "ricordo_ready_queue_wake_ups 1.0" in text
    assert (value(metrics, "ricordo_redis_round_trips") or 0) >= 1


def test_calls_to_models_are_counted_with_their_time_and_tokens() -> None:
    metrics = Metrics()
    usage = Usage(prompt_tokens=100, completion_tokens=7, cached_tokens=60)
    metrics.observe(CallReport("internal", "m", "second", 0.5, usage))
    failure = ModelUnavailable("out of order")
    metrics.observe(CallReport("internal", "m", "second", 0.5, error=failure))
    of_second = {"kind": "internal", "model": "second"}
    for outcome in ("ok", "ModelUnavailable"):
        assert value(metrics, "ricordo_model_calls_total", outcome=outcome, **of_second) == 1
    of_first = {"kind": "internal", "model": "first"}
    assert value(metrics, "ricordo_model_calls_total", outcome="ok", **of_first) is None
    assert value(metrics, "ricordo_model_seconds_sum", **of_second) == 1
    tokens = {
        direction: value(metrics, "ricordo_tokens_total", direction=direction, **of_second)
        for direction in ("prompt", "cached", "completion")
    }
    assert tokens == {"prompt": 100, "cached": 60, "completion": 7}


def test_sends_are_counted_by_outcome() -> None:
    metrics = Metrics()
    metrics.observe(PartSent("sent"))
    metrics.observe(PartSent("Blocked"))
    assert value(metrics, "ricordo_sends_total", outcome="sent") == 1
    assert value(metrics, "ricordo_sends_total", outcome="Blocked") == 1


async def test_refused_updates_of_an_operators_fields_are_counted(memory: Memory) -> None:
    metrics = Metrics()
    services = services_of(memory, Settings(_env_file=None, learn="state"))
    services.features.append(Feature(name="berths", replaces=Replacements(knowledge_base=Berth)))
    made = behaviors_of(replace(services, observe=metrics.observe))
    [state] = [each for each in made.behaviors if isinstance(each, RunningState)]
    for update in ('{"number": "A-1"}', '{"number": 7}'):
        state.with_domain("", update)
    assert value(metrics, "ricordo_domain_refusals_total", source="tool") == 1
