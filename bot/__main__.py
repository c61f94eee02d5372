"""The command line: the whole bot, one process of several, or the playground without a token."""

# ruff: noqa: E402 - the garbage collector is switched off before anything else is imported
import gc

# Imports leave no garbage, and the search for it takes a tenth of the time of a start.
gc.disable()

import importlib.util
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the modules below cannot be imported there
    sys.exit(f"Ricordo needs Python 3.11 or newer; this is {sys.version.split()[0]}")
if importlib.util.find_spec("structlog") is None:
    sys.exit(
        "Ricordo's packages are not installed in this Python. Use `make run`, or: "
        "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt "
        "&& .venv/bin/python -m bot"
    )

import argparse
import os
import shlex
from collections.abc import Callable
from typing import TypeAlias

import structlog

from bot.app import App
from bot.features import add_all_commands, all_settings
from bot.operator_classes import UnusableClass
from bot.parsing.confined import hide_from_others
from bot.prompt.assemble import UnusableSystemPrompt
from bot.runtime.logs import configure_logs
from bot.runtime.process import (
    EVERYTHING,
    WEB,
    WORKER,
    Duty,
    raise_file_limit,
    redis_address,
    run_forked,
    run_loop,
    run_until_signal,
    tune_interpreter,
)
from bot.runtime.web import PortUnavailable
from bot.telegram.errors import BadToken, WebhookTaken
from config.loading import (
    SettingsError,
    hide_secrets,
    load_settings,
    reload_settings,
    secrets_of,
    unknown_names,
)
from config.settings import Settings
from memory.behaviors.behavior import FunctionNameClash
from memory.store.embedded import EmbeddedBusy, EmbeddedError, EmbeddedUnwritable
from memory.store.errors import StoreError, StoreUnfit
from memory.store.store import OtherLayout

log = structlog.get_logger(__name__)

_WORKER_NICENESS = 10

Command: TypeAlias = Callable[[Settings, argparse.Namespace], int]
# Why a bot cannot start, and what to do about it: the first type that matches. If there is no
# advice, the text of the error names its setting. "{start}" is what the person typed.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (EmbeddedBusy, "stop the bot that runs there, or use another folder: DATA_DIR=~/other {start}"),
    (EmbeddedUnwritable, "use a folder of yours: DATA_DIR=~/ricordo {start}; or set REDIS_URL"),
    (EmbeddedError, ""),
    (OtherLayout, ""),
    (StoreUnfit, ""),
    (StoreError, "look at REDIS_URL, and at what its user may do; `python -m bot check` says more"),
    (PortUnavailable, "stop what uses the port, or use another one: PORT=8081 {start}"),
    (
        FunctionNameClash,
        "give the tool of your behavior another name; BEHAVIORS lists your behaviors",
    ),
    (UnusableClass, ""),
    (UnusableSystemPrompt, ""),
    (WebhookTaken, ""),
    (BadToken, "copy TELEGRAM_BOT_TOKEN again from @BotFather: /mybots, API Token"),
)


def main() -> int:
    """Run the command that the arguments name; return the exit status."""
    tune_interpreter()
    options = _parser().parse_args()
    try:
        settings = load_settings(kind=all_settings())
        if settings.features:  # which may have settings of their own
            settings = load_settings(kind=all_settings(settings.features))
    except (SettingsError, UnusableClass) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    configure_logs("info", secrets_of(settings))
    for name, advice in unknown_names(type(settings)):
        log.warning("unknown setting", name=name, advice=advice)
    hide_secrets(settings)
    hide_from_others()
    command: Command = options.command
    try:
        return command(settings, options)
    except tuple(kind for kind, _ in _ADVICE) as error:
        advice = next(text for kind, text in _ADVICE if isinstance(error, kind))
        start = "make run" if os.environ.get("MAKELEVEL") else shlex.join(sys.orig_argv)
        given = {"advice": advice.format(start=start)} if advice else {}
        log.critical("cannot start", reason=type(error).__name__, detail=str(error), **given)
        return 1


def _parser() -> argparse.ArgumentParser:
    """Return the parser; each command has the function that runs it in `command`."""
    parser = argparse.ArgumentParser(prog="python -m bot", description=__doc__)
    parser.set_defaults(command=_everything)
    commands = parser.add_subparsers(title="commands", metavar="command")
    demo = commands.add_parser("demo", help="open the playground")
    demo.set_defaults(command=_demo)
    web = commands.add_parser("web", help="take updates in and serve pages, but run no turns")
    web.set_defaults(command=_one_of_many, duty=WEB)
    worker = commands.add_parser("worker", help="run turns and learn, but take no updates in")
    worker.set_defaults(command=_one_of_many, duty=WORKER, processes=1)
    if hasattr(os, "fork"):  # Windows has none
        worker.add_argument(
            "--processes",
            type=int,
            choices=range(1, 65),
            metavar="N",
            help="start N workers that share memory, on PORT to PORT+N-1",
        )
    if sys.argv[1:2] not in ([], ["web"], ["worker"]):  # a bot that serves needs no other command
        add_all_commands(commands)
    return parser


def _everything(settings: Settings, options: argparse.Namespace) -> int:
    if settings.telegram_bot_token is not None:
        return _serve(settings, EVERYTHING)
    if settings.platform:
        log.critical("cannot start", reason="TELEGRAM_BOT_TOKEN is not set")
        return 1
    log.info("TELEGRAM_BOT_TOKEN is not set: starting the playground")
    return _demo(settings, options)


def _one_of_many(settings: Settings, options: argparse.Namespace) -> int:
    """Run the web process, or one or more workers, of several processes on one Redis."""
    token = settings.telegram_bot_token
    if token is None or settings.redis_url is None:
        missing = "TELEGRAM_BOT_TOKEN" if token is None else "REDIS_URL"
        log.critical("cannot start", reason=f"{missing} is not set")
        return 1
    if options.duty is WORKER and hasattr(os, "nice"):  # Windows has none
        # A web process on the same machine has priority, because Telegram waits for it.
        os.nice(_WORKER_NICENESS)
    if options.duty is WORKER and options.processes > 1:

        def serve(number: int) -> int:
            port = settings.port and settings.port + number
            os.environ["PORT"] = str(port)  # a reload reads it, too
            reload_settings(settings, ".env", lambda _: None)  # the parent never does
            return _serve(settings.model_copy(update={"port": port}), WORKER)

        return run_forked(options.processes, serve)
    return _serve(settings, options.duty)


def _demo(settings: Settings, _: argparse.Namespace) -> int:
    # A bot does not need the playground, and its import takes a quarter of a second.
    from bot.playground.play import play  # noqa: PLC0415

    play(settings)
    return 0


def _serve(settings: Settings, duty: Duty) -> int:
    raise_file_limit()
    if sys.platform == "win32":
        log.warning("Windows: files that people send are read without limits")
    if settings.lacks_key():
        log.error("OPENAI_API_KEY is not set: no message can be answered", look_at="OPENAI_API_KEY")
    with redis_address(settings) as redis:
        run_loop(run_until_signal(App(settings, redis, duty=duty).run))
    return 0


if __name__ == "__main__":
    sys.exit(main())
