"""Error reports name code and types, and no text of people."""

import asyncio
import logging
import sys

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.features.traces.feature import feature
from bot.features.traces.probes import PROBES
from bot.features.traces.settings import TraceSettings
from memory.memory import Memory
from tests.bot.features.services import services_of
from tests.servers.monitoring import MonitoringServer

CANARY = "Quetzalcoatlus"
DSN = "https://public@127.0.0.1/1"


def settings_of(dsn: str) -> TraceSettings:
    return TraceSettings(sentry_dsn=SecretStr(dsn))


async def test_a_missing_package_is_named_once_and_the_bot_runs_on(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    services = services_of(memory, settings_of(DSN))
    with capture_logs() as log, services.closing:
        feature(services)
    assert [line["advice"].split(": ")[0] for line in log] == ["install sentry-sdk"]


async def test_a_report_has_the_types_of_an_error_and_its_cause_and_no_text(memory: Memory) -> None:
    async with MonitoringServer() as server:
        services = services_of(memory, settings_of(server.dsn))
        with services.closing:
            feature(services)
            try:
                _fail(CANARY)
            except ValueError:
                # As structlog does it: it has made a text of the exception, and passes a mapping.
                fields = {"event": CANARY, "reference": "a1b2c3d4", "said": CANARY}
                logging.getLogger("bot.turn.answer").log(logging.ERROR, fields)
            logging.getLogger("bot.app").error("an error without an exception")
            await server.asked.wait()
        [error] = server.errors
        assert [each["type"] for each in error["exception"]["values"]] == ["KeyError", "ValueError"]
        assert error["tags"] == {"reference": "a1b2c3d4"}
        assert {"extra", "breadcrumbs", "server_name", "message", "contexts"}.isdisjoint(error)
        assert CANARY.encode() not in b"".join(server.bodies)


async def test_an_error_that_ends_the_bot_is_reported(memory: Memory) -> None:
    async with MonitoringServer() as server:
        services = services_of(memory, settings_of(server.dsn))

        def run() -> None:
            with services.closing:
                feature(services)
                _fail(CANARY)

        with pytest.raises(ValueError, match=CANARY):
            await asyncio.to_thread(run)
        [error] = server.errors
        assert [each["type"] for each in error["exception"]["values"]] == ["KeyError", "ValueError"]


@pytest.mark.parametrize(("is_here", "verdict"), [(True, "ok"), (False, "warn")])
async def test_check_names_the_server_without_the_key(
    monkeypatch: pytest.MonkeyPatch, verdict: str, *, is_here: bool
) -> None:
    if not is_here:
        monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    [row] = [row async for row in PROBES[1].run(settings_of(DSN))]
    assert row.verdict == verdict
    assert "public" not in row.seen + row.advice


def _fail(said: str) -> None:
    try:
        dict[str, str]()[said]
    except KeyError as error:
        raise ValueError(said) from error
