"""Rows about monitoring: only if it is on, and with what to do."""

import sys

import pytest
from pydantic import SecretStr

from bot.check.collector import check_monitoring
from config.settings import Settings
from tests.servers.monitoring import MonitoringServer
from tests.valkey import free_port


async def rows_of(endpoint: str | None, dsn: str | None = None) -> list[tuple[str, str]]:
    settings = Settings(
        otel_exporter_otlp_endpoint=endpoint, sentry_dsn=SecretStr(dsn) if dsn else None
    )
    return [(row.verdict, row.seen + row.advice) async for row in check_monitoring(settings)]


async def test_without_settings_there_is_no_row() -> None:
    assert await rows_of(None) == []


async def test_a_collector_that_answers_is_fine_and_no_error_is_reported() -> None:
    async with MonitoringServer() as server:
        (traces, _), (errors, seen) = await rows_of(server.endpoint, server.dsn)
        assert (traces, errors, server.errors) == ("ok", "ok", [])
        assert "public" not in seen


async def test_a_collector_that_is_away_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    [(verdict, seen)] = await rows_of(f"http://127.0.0.1:{free_port()}")
    assert (verdict, "OTEL_EXPORTER_OTLP_ENDPOINT" in seen) == ("warn", True)


async def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bot.metrics.traces", None)
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    (traces, need), (errors, sdk) = await rows_of("http://127.0.0.1:1", "https://key@127.0.0.1/1")
    assert (traces, errors) == ("warn", "warn")
    assert "pip install opentelemetry-sdk" in need
    assert "pip install sentry-sdk" in sdk
