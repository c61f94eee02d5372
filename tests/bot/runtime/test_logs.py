"""A log line names conversation and turn, is JSON except on a terminal, and holds no secret."""

import asyncio
import gc
import io
import logging
import sys
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import orjson
import pytest
import structlog

from bot.runtime.logs import Redaction, configure_logs

TOKEN = "123456:TOKEN"
SECRETS = [TOKEN, 'pa"ss\\wörd']

Log = Callable[..., None]
Configure = Callable[[str], None]


@pytest.fixture(params=["json", "terminal"])
def configure(
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],  # it makes the output that a test reads
    monkeypatch: pytest.MonkeyPatch,
) -> Configure:
    del capsys
    monkeypatch.setattr(sys.stdout, "isatty", lambda: request.param == "terminal")
    return lambda level: configure_logs(level, SECRETS)


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level, configured = root.handlers[:], root.level, structlog.get_config()
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.configure(**configured)


def own(event: str, **values: object) -> None:
    structlog.get_logger("own").error(event, **values)


def untrusted(event: str, exc_info: Exception | None = None, **values: object) -> None:
    logging.getLogger("untrusted").error("%s %s", event, values, exc_info=exc_info)


def logged(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("log", [own, untrusted])
def test_each_line_is_json_and_names_the_turn(log: Log, capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", SECRETS)
    with structlog.contextvars.bound_contextvars(conversation="c:1:0", turn="7"):
        log("two\nlines", parts=2)
    (line,) = logged(capsys)
    assert line["event"].startswith("two\nlines")
    assert line["timestamp"].endswith("Z")
    named = {name: line[name] for name in ("conversation", "turn", "level", "logger")}
    assert named == {"conversation": "c:1:0", "turn": "7", "level": "error", "logger": log.__name__}


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("warning", SECRETS)
    structlog.get_logger("own").info("quiet")
    structlog.get_logger("own").warning("loud")
    assert [line["event"] for line in logged(capsys)] == ["loud"]


@pytest.mark.parametrize("log", [own, untrusted])
def test_secrets_are_removed_everywhere(
    log: Log, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("info")
    address = f"http://telegram/bot{TOKEN}/getMe"
    log(f"calling {address}", url=httpx2.URL(address), nested={TOKEN: [(TOKEN,)]}, key=TOKEN)
    out = capsys.readouterr().out
    assert TOKEN not in out
    assert out.count("[secret]") == 5


def test_a_secret_that_json_escapes_is_removed(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", SECRETS)
    own("login", given=f"user:{SECRETS[1]}@host")
    assert logged(capsys)[0]["given"] == "user:[secret]@host"


@pytest.mark.parametrize("log", [own, untrusted])
def test_a_traceback_shows_neither_texts_of_exceptions_nor_values_of_variables(
    log: Log, configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("info")

    def failing(text: str) -> None:
        try:
            int(text)
        except ValueError as error:
            raise ExceptionGroup(text, [KeyError(text)]) from error

    try:
        failing("what Anna " + "said")
    except ExceptionGroup as error:
        log("failed", exc_info=error)
    out = capsys.readouterr().out
    assert out.count("Traceback (most recent call last)") == 3
    found = [out.find(name) for name in ("in failing", "ValueError", "ExceptionGroup", "KeyError")]
    assert sorted(found) == found
    assert found[0] > 0
    assert "what Anna said" not in out


def test_asyncio_logs_no_text_of_a_tasks_exception(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logs("info", SECRETS)

    async def failing() -> None:
        raise ValueError("what Anna " + "said")

    async def forget_a_task() -> None:
        task = asyncio.create_task(failing())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        del task
        gc.collect()

    asyncio.run(forget_a_task())
    [line] = logged(capsys)
    assert line["event"] == "Task exception was never retrieved"
    assert "ValueError" in line["exception"]
    assert "what Anna said" not in str(line)


async def test_http_libraries_do_not_log_addresses_even_at_debug_level(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("debug")
    transport = httpx2.MockTransport(lambda _: httpx2.Response(200))
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.get("http://telegram/bot999:never-configured/getMe")
    assert capsys.readouterr().out == ""


def test_a_line_with_a_lone_surrogate_is_written(
    configure: Configure, capsys: pytest.CaptureFixture[str]
) -> None:
    configure("info")
    own("half an emoji", text="\ud83d")
    shown = capsys.readouterr()
    assert ("half an emoji" in shown.out, shown.err) == (True, "")


def test_a_secret_inside_another_leaves_no_rest_and_no_other_value_is_changed() -> None:
    clean = Redaction(["secret-word", "secret-word-and-more"])
    assert clean(None, "", {"event": "secret-word-and-more"}) == {"event": "[secret]"}
    too_short = Redaction(["", "1234"])
    assert too_short(None, "", {"event": "1234"}) == {"event": "1234"}
    values = {"n": 3, "s": 0.5, "yes": True, "none": None}
    assert Redaction(SECRETS)(None, "", dict(values)) == values


class Terminal(io.StringIO):
    """Standard output that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("output", "no_color", "is_colored"),
    [(Terminal, "", True), (Terminal, "1", False), (io.StringIO, "", False)],
    ids=["terminal", "NO_COLOR", "file"],
)
def test_lines_are_colored_only_on_a_terminal_without_no_color(
    monkeypatch: pytest.MonkeyPatch, output: type[io.StringIO], no_color: str, *, is_colored: bool
) -> None:
    monkeypatch.setenv("NO_COLOR", no_color)
    monkeypatch.setattr(sys, "stdout", written := output())
    configure_logs("info", SECRETS)
    own("words")
    assert ("\x1b[" in written.getvalue()) == is_colored
