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
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import structlog
from pydantic import SecretStr

from bot.agent.toolbox import ToolNameClash
from bot.app import App
from bot.check.setting_rows import lacks_model_key
from bot.metrics.monitoring import reporting_errors
from bot.own_classes import UnusableClass
from bot.prompt.system_prompt import UnusableSystemPrompt
from bot.runtime.logs import configure_logs
from bot.runtime.process import (
    EVERYTHING,
    WEB,
    WORKER,
    Duty,
    raise_file_limit,
    redis_address,
    run_loop,
    run_until_signal,
    tune_interpreter,
)
from bot.runtime.web import PortUnavailable
from bot.telegram.errors import BadToken, WebhookTaken
from config.loading import SettingsError, load_settings
from config.settings import Settings
from config.unknown import unknown_names
from memory.behaviors.manager import FunctionNameClash
from memory.store.embedded import EmbeddedBusy, EmbeddedError, EmbeddedUnwritable
from memory.store.errors import StoreError
from memory.store.migration import LayoutTooNew

log = structlog.get_logger(__name__)

_WORKER_NICENESS = 10

Command: TypeAlias = Callable[[Settings, argparse.Namespace], int]
_REASONS = (
    BadToken,
    EmbeddedError,
    FunctionNameClash,
    PortUnavailable,
    StoreError,
    ToolNameClash,
    UnusableClass,
    UnusableSystemPrompt,
    WebhookTaken,
)

_RENAME = "give the tool of your behavior another name; BEHAVIORS lists your behaviors"
# The first type that matches. The text of any other error names its setting.
_ADVICE: tuple[tuple[type[Exception], str], ...] = (
    (
        EmbeddedBusy,
        "is the bot running already? If not, use another folder: DATA_DIR=~/ricordo-2 make run",
    ),
    (
        EmbeddedUnwritable,
        "use a folder that you may write to: DATA_DIR=~/ricordo make run; or set REDIS_URL",
    ),
    (EmbeddedError, ""),
    (LayoutTooNew, ""),
    (
        StoreError,
        'look at REDIS_URL; this command should answer PONG: redis-cli -u "$REDIS_URL" ping',
    ),
    (
        PortUnavailable,
        "is the bot running already? If not, use another port: PORT=8081 make run",
    ),
    (FunctionNameClash, _RENAME),
    (ToolNameClash, _RENAME),
    (BadToken, "copy TELEGRAM_BOT_TOKEN again from @BotFather: /mybots, API Token"),
)


def main() -> int:
    """Run the command that the arguments name; return the exit status."""
    tune_interpreter()
    options = _parser().parse_args()
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    configure_logs(settings.log_level, settings.log_format, _secrets(settings))
    for unknown in unknown_names():
        log.warning("unknown setting", name=unknown.name, did_you_mean=unknown.nearest)
    command: Command = options.command
    try:
        return command(settings, options)
    except _REASONS as error:
        advice = next((text for kind, text in _ADVICE if isinstance(error, kind)), "")
        given = {"advice": advice} if advice else {}
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
    worker.set_defaults(command=_one_of_many, duty=WORKER)
    check = commands.add_parser("check", help="test settings and every outside service")
    check.set_defaults(command=_check)
    check.add_argument(
        "--release", action="store_true", help="test only what would prevent a start"
    )
    ingest = commands.add_parser("ingest", help="put documents into a namespace")
    ingest.set_defaults(command=_ingest)
    ingest.add_argument("path", type=Path, help="a document, or a folder of them")
    ingest.add_argument("--namespace", required=True, help="where the documents are put")
    ingest.add_argument("--link", default="", help="where people find the document")
    ingest.add_argument("--remove", action="store_true", help="remove the documents")
    backup = commands.add_parser("backup", help="write the memory of this bot into a file")
    backup.set_defaults(command=_backup)
    backup.add_argument("file", type=Path, help="where to; an older file is replaced")
    backup.add_argument(
        "--journal", action="store_true", help="only what must stay erased, small and quick"
    )
    restore = commands.add_parser("restore", help="restore backups, without what was erased since")
    restore.set_defaults(command=_restore)
    restore.add_argument(
        "files", type=Path, nargs="+", help="backups, and journals that were saved later"
    )
    restore.add_argument(
        "--other-bot", action="store_true", help="also accept files of a bot with another token"
    )
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
    """Run one process of several that share a Redis."""
    token = settings.telegram_bot_token
    if token is None or settings.redis_url is None:
        missing = "TELEGRAM_BOT_TOKEN" if token is None else "REDIS_URL"
        log.critical("cannot start", reason=f"{missing} is not set")
        return 1
    if options.duty is WORKER and hasattr(os, "nice"):  # Windows has none
        # If both run on one machine, the web process has priority, because Telegram waits for it.
        os.nice(_WORKER_NICENESS)
    return _serve(settings, options.duty)


def _demo(settings: Settings, _: argparse.Namespace) -> int:
    # A bot does not need the playground, and its import takes a quarter of a second.
    from bot.playground.play import play  # noqa: PLC0415

    play(settings)
    return 0


def _check(settings: Settings, options: argparse.Namespace) -> int:
    from bot.check.command import run_check  # noqa: PLC0415 - as above

    # Log lines would stand between the rows of the table, and the table already names the errors.
    configure_logs("error", settings.log_format, _secrets(settings))
    return run_check(settings, for_release=options.release)


def _ingest(settings: Settings, options: argparse.Namespace) -> int:
    from bot.ingest import run_ingest  # noqa: PLC0415 - as above

    return run_ingest(settings, options)


def _backup(settings: Settings, options: argparse.Namespace) -> int:
    from bot.backup import run_backup  # noqa: PLC0415 - as above

    return run_backup(settings, options)


def _restore(settings: Settings, options: argparse.Namespace) -> int:
    from bot.backup import run_restore  # noqa: PLC0415 - as above

    return run_restore(settings, options)


def _serve(settings: Settings, duty: Duty) -> int:
    raise_file_limit()
    if lacks_model_key(settings):
        log.error("OPENAI_API_KEY is not set: no message can be answered", look_at="OPENAI_API_KEY")
    with reporting_errors(settings), redis_address(settings) as redis:
        app = App(settings, redis, duty=duty)
        run_loop(run_until_signal(app.run))
    return 0


def _secrets(settings: Settings) -> list[str]:
    values = [getattr(settings, name) for name in Settings.model_fields]
    values += [value for server in settings.mcp_servers for _, value in server.headers]
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


if __name__ == "__main__":
    sys.exit(main())
