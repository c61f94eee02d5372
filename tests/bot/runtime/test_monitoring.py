"""Error reports and the watchdog of the event loop name code and types, and no text of people."""

import asyncio
import logging
import sys
import threading
import time
from collections.abc import AsyncIterator

import pytest
from pydantic import SecretStr
from structlog.testing import capture_logs

from bot.runtime.logs import reporting_errors
from bot.runtime.process import MAX_BLOCKED_S, LoopWatchdog
from bot.telegram.updates import from_bytes, to_bytes
from memory.store.tasks import end_tasks
from tests.bot.telegram import raw
from tests.servers.monitoring import MonitoringServer
from tests.settings import Settings

CANARY = "Quetzalcoatlus"
DSN = SecretStr("https://key@127.0.0.1/1")


def test_a_missing_package_is_named_once_and_the_bot_runs_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "sentry_sdk", None)
    with capture_logs() as log, reporting_errors(Settings(sentry_dsn=DSN)):
        pass
    assert [line["advice"].split(": ")[0] for line in log] == ["install sentry-sdk"]


async def test_a_report_has_the_types_of_an_error_and_its_cause_and_no_text_of_them() -> None:
    async with MonitoringServer() as server:
        settings = Settings(sentry_dsn=SecretStr(server.dsn))
        with reporting_errors(settings):
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


def test_the_trace_of_an_update_is_stored_only_if_there_is_one() -> None:
    message = raw.inbound(raw.message("hello"))
    assert from_bytes(to_bytes(message)).trace == ""
    assert to_bytes(message).endswith(b'"hello"]')


def _fail(said: str) -> None:
    try:
        dict[str, str]()[said]
    except KeyError as error:
        raise ValueError(said) from error


@pytest.fixture
async def watchdog() -> AsyncIterator[asyncio.Task[None]]:
    running = asyncio.create_task(LoopWatchdog().run())
    await asyncio.sleep(0)
    yield running
    await end_tasks([running])


def block_the_loop(secret: str) -> int:
    until = time.thread_time() + 0.4
    while time.thread_time() < until:
        secret = secret[::-1]
    return len(secret)


@pytest.mark.usefixtures("watchdog")
async def test_the_blocking_code_is_named_without_its_variables() -> None:
    with capture_logs() as logs:
        block_the_loop("the text of a person")
        await asyncio.sleep(MAX_BLOCKED_S)  # the next beat
    line = next(line for line in logs if "block_the_loop" in line.get("frames", ""))
    assert (line["event"], line["log_level"]) == ("event loop blocked", "warning")
    assert line["cpu_ms"] >= 400
    assert line["frames"].startswith("runtime/test_monitoring.py:block_the_loop < ")
    assert "text of a person" not in str(line)


async def test_the_watchdog_thread_ends_with_its_task(watchdog: asyncio.Task[None]) -> None:
    await end_tasks([watchdog])
    assert "loop watchdog" not in {thread.name for thread in threading.enumerate()}
