"""Starts bots fast: a process that has imported and read everything forks one for each start.

A bot so started is a process of its own, with its own environment, signals and exit status; only
the seconds of imports are not paid again, and it sets no menus unless the environment has `MENUS`.
`SLOTS` in the environment is how many conversations it answers at once.
If `PWD` names a folder with a package `bot`, the features are imported again, from there.
`PYTHONPATH` is read as at any start, for features of operators.
`test_starting` starts it by `python -m bot` instead.
"""

import asyncio
import gc
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import NamedTuple, NoReturn

import orjson

import bot.__main__
import bot.app
import bot.features
from bot.http_client import trusted
from bot.language.catalogue import Catalogue
from memory.learning import vectors
from memory.store.store import script_names, source
from memory.text import tokens
from memory.text.untrusted_text import escaped

_IMPORTED_LATE = (
    "anyio._backends._asyncio",
    "numpy.ma",
    "openai.lib.streaming.chat",
    "openai.resources.chat.completions",
    "openai.resources.embeddings",
    "uvicorn.lifespan.off",
    "uvloop",
)
"""What libraries import only when a bot starts or answers first."""

_BOT = Path(bot.__main__.__file__).parent
_NAME_FEATURES = ("bot.__main__", "bot.app", "bot.features")
_CORE = {*sys.modules}.difference(_NAME_FEATURES)
"""What was imported before any feature, so none of it needs one."""
_MAX_BYTES = 2**16


def serve(path: str, user: int) -> None:
    """Answer start requests on a unix socket, in the background, until the process `user` ends."""
    assert not [name for name in _CORE if name.startswith("bot.features.")]
    asyncio.run(tokens.TokenCounter.load())
    vectors._TOGETHER = 2  # tests wait for the vectors of each turn
    Catalogue().meaning("")  # reads all languages
    trusted()
    for name in _IMPORTED_LATE:
        import_module(name)
    for kind in ("feature", "probes", "command_line"):
        bot.features.modules(kind)  # parsers are imported only by processes that bots start
    _build_settings_once()
    escaped("<")
    for folder in _BOT.parent.glob("*/**/lua"):
        for name in script_names(folder):
            source(name, folder)
    gc.freeze()  # what is shared need not be looked through, and so copied, in each bot
    over = os.pidfd_open(user)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    if os.fork():
        os._exit(0)  # whoever started this waits no longer
    os.setsid()  # a signal to the group of the tests leaves this process alive to end the bots
    bots: list[_Bot] = []
    while True:
        watched = [end for bot in bots for end in (bot.exited, bot.connection)]
        ready, _, _ = select.select([listener, over, *watched], [], [])
        for each in [each for each in bots if over in ready or {*each} & {*ready}]:
            bots.remove(each)
            each.end(has_exited=each.exited in ready)
        if over in ready:
            return
        if listener in ready:
            bots.append(_fork(listener, bots))


class _Bot(NamedTuple):
    """A forked bot: its end can be read from `exited`, and that of its test from `connection`."""

    pid: int
    exited: int
    connection: socket.socket

    def end(self, *, has_exited: bool) -> None:
        """Report the exit status, or end the bot because its test has ended."""
        if not has_exited:
            os.kill(self.pid, signal.SIGKILL)
        _, status = os.waitpid(self.pid, 0)
        with suppress(OSError):
            self.connection.sendall(b"%d\n" % os.waitstatus_to_exitcode(status))
        self.close()

    def close(self) -> None:
        os.close(self.exited)
        self.connection.close()


def _fork(listener: socket.socket, others: Sequence[_Bot]) -> _Bot:
    """Fork the bot that a test asks for, and tell the test its id."""
    connection, _ = listener.accept()
    message, descriptors, _, _ = socket.recv_fds(connection, _MAX_BYTES, 1)
    child = os.fork()
    if child == 0:
        for each in others:
            each.close()
        listener.close()
        connection.close()
        environment, command = orjson.loads(message)
        _become_a_bot(environment, command, descriptors[0])
    os.close(descriptors[0])
    with suppress(OSError):  # the test may have ended already
        connection.sendall(b"%d\n" % child)
    return _Bot(child, os.pidfd_open(child), connection)


def _build_settings_once() -> None:
    """Build the class of all settings here, which takes longer than all else at a start."""
    make = cache(bot.features.all_settings)
    make().model_rebuild()
    vars(bot.__main__)["all_settings"] = make


def _set_no_menus() -> None:
    """Leave menus and descriptions out: they are 33 of 35 requests of a start."""
    app = import_module("bot.app")
    plan = app.SetupPlan
    vars(app)["SetupPlan"] = lambda webhook, *_: plan(webhook, (), ())


def _forget_features() -> None:
    """Have the features and their list imported again, from this folder."""
    for name in {*sys.modules}.difference(_CORE):
        if name.partition(".")[0] in ("bot", "memory", "config"):
            del sys.modules[name]
    bot.__path__[:] = [str(Path.cwd() / "bot")]


def _become_a_bot(environment: dict[str, str], command: list[str], output: int) -> NoReturn:
    os.setsid()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(environment.get("PWD", "."))
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    if Path("bot").is_dir() and not Path("bot").samefile(_BOT):
        _forget_features()
    if "MENUS" not in environment:
        _set_no_menus()
    if slots := environment.get("SLOTS"):
        assistant = vars(import_module("bot.assistant"))
        assert "MAX_CONCURRENT_TURNS" in assistant
        assistant["MAX_CONCURRENT_TURNS"] = int(slots)
    if "LOCAL_SITES" in environment:
        import_module("tests.acceptance.local_sites").read_local_sites_only()
    sys.argv = ["bot", *command]
    status = 1
    try:
        status = import_module("bot.__main__").main()
    except SystemExit as ended:  # of a process that the bot has forked
        status = int(ended.code or 0)
    except BaseException:  # noqa: BLE001 - shown as the interpreter itself would
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]))
