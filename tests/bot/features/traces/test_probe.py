"""The row about traces: only if they are on, and with what to do."""

import sys

import pytest
from structlog.testing import capture_logs

from bot.features.traces.feature import feature
from bot.features.traces.probes import PROBES
from bot.features.traces.settings import TraceSettings
from memory.memory import Memory
from tests.bot.features.services import services_of
from tests.servers.monitoring import MonitoringServer
from tests.valkey import free_port


async def row_of(endpoint: str) -> tuple[str, str]:
    settings = TraceSettings(otel_exporter_otlp_endpoint=endpoint)
    [row] = [row async for row in PROBES[0].run(settings)]
    return row.verdict, row.seen + row.advice


def test_without_its_setting_there_is_no_row() -> None:
    assert not PROBES[0].is_needed(TraceSettings())


async def test_a_collector_that_answers_is_fine() -> None:
    async with MonitoringServer() as server:
        verdict, _ = await row_of(server.url)
        assert verdict == "ok"


async def test_a_collector_that_is_away_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.1")
    verdict, seen = await row_of(f"http://127.0.0.1:{free_port()}")
    assert (verdict, "OTEL_EXPORTER_OTLP_ENDPOINT" in seen) == ("warn", True)


async def test_missing_packages_are_named_and_the_bot_runs_on(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "bot.features.traces.traces", None)
    verdict, seen = await row_of("http://127.0.0.1:1")
    assert (verdict, "install opentelemetry-sdk" in seen) == ("warn", True)
    with capture_logs() as log:
        made = feature(
            services_of(memory, TraceSettings(otel_exporter_otlp_endpoint="http://127.0.0.1:1"))
        )
    assert made.observers == ()
    [line] = log
    assert line["advice"].startswith("install opentelemetry-sdk opentelemetry-exporter-otlp")
