"""The bot, whole or as one process of several; without TELEGRAM_BOT_TOKEN the playground."""

# ruff: noqa: E402 - the collector has to stand still before anything else is imported
import gc

# Nothing of what is imported becomes garbage, and looking for some is a tenth of the start.
gc.disable()

import importlib.util
import sys

if sys.version_info < (3, 11):  # noqa: UP036 - the modules below do not even load there
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

from bot.app import EVERYTHING, WEB, WORKER, App, Duty
from bot.behaviors import UnusableBehavior
from bot.check.setting_rows import lacks_model_key
from bot.prompt.system_prompt import UnusableSystemPrompt
from bot.runtime.logs import configure_logs
from bot.runtime.process import raise_file_limit, redis_address, run_loop, run_until_signal
from bot.runtime.web import PortUnavailable
from bot.telegram.errors import BadToken, WebhookTaken
from config.loading import SettingsError, load_settings
from config.settings import Settings
from config.unknown import unknown_names
from memory.store.embedded import EmbeddedBusy, EmbeddedError, EmbeddedUnwritable
from memory.store.errors import StoreError
from memory.store.migration import LayoutTooNew

log = structlog.get_logger(__name__)

_WORKER_NICENESS = 10

_THREAD_TURN_S = 0.0005
"""While a thread renders or indexes something long, the event loop gets its turn this soon.

Python's default is ten times as long, and an answer needs many turns of the loop.
"""

Command: TypeAlias = Callable[[Settings, argparse.Namespace], int]
_REASONS = (
    BadToken,
    EmbeddedError,
    PortUnavailable,
    StoreError,
    UnusableBehavior,
    UnusableSystemPrompt,
    WebhookTaken,
)

# The first kind that fits; what is not here names its variable itself.
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
    (BadToken, "copy TELEGRAM_BOT_TOKEN again from @BotFather: /mybots, API Token"),
)


def main() -> int:
    """Run a command to its end; return the exit status."""
    sys.setswitchinterval(_THREAD_TURN_S)
    gc.freeze()
    gc.enable()
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
    """Return the parser; each command names the function that runs it."""
    parser = argparse.ArgumentParser(prog="python -m bot", description=__doc__)
    parser.set_defaults(command=_everything)
    commands = parser.add_subparsers(title="commands", metavar="command")
    demo = commands.add_parser("demo", help="open the playground")
    demo.set_defaults(command=_demo)
    web = commands.add_parser("web", help="take updates in and serve pages, without turn work")
    web.set_defaults(command=_one_of_many, duty=WEB)
    worker = commands.add_parser(
        "worker", help="work on turns and learn, without taking updates in"
    )
    worker.set_defaults(command=_one_of_many, duty=WORKER)
    check = commands.add_parser("check", help="test settings and every outside service")
    check.set_defaults(command=_check)
    check.add_argument(
        "--release", action="store_true", help="only what would make a start impossible"
    )
    ingest = commands.add_parser("ingest", help="put documents into a namespace")
    ingest.set_defaults(command=_ingest)
    ingest.add_argument("path", type=Path, help="a text, Markdown or PDF file, or a folder of them")
    ingest.add_argument("--namespace", required=True, help="where the documents are put")
    ingest.add_argument("--link", default="", help="where people find the document")
    ingest.add_argument("--remove", action="store_true", help="take the documents out again")
    return parser


def _everything(settings: Settings, options: argparse.Namespace) -> int:
    token = settings.telegram_bot_token
    if token is not None:
        return _serve(settings, token.get_secret_value(), EVERYTHING)
    if settings.platform:
        log.critical("cannot start", reason="TELEGRAM_BOT_TOKEN is not set")
        return 1
    log.info("no TELEGRAM_BOT_TOKEN is set, so this is the playground")
    return _demo(settings, options)


def _one_of_many(settings: Settings, options: argparse.Namespace) -> int:
    """Run one process of several, which share a Redis."""
    token = settings.telegram_bot_token
    if token is None or settings.redis_url is None:
        missing = "TELEGRAM_BOT_TOKEN" if token is None else "REDIS_URL"
        log.critical("cannot start", reason=f"{missing} is not set")
        return 1
    if options.duty is WORKER and hasattr(os, "nice"):  # Windows has none
        # On a machine that both share, the web process comes first: Telegram waits for it.
        os.nice(_WORKER_NICENESS)
    return _serve(settings, token.get_secret_value(), options.duty)


def _demo(settings: Settings, _: argparse.Namespace) -> int:
    # A bot in service needs nothing of it, and would load it for a quarter of a second.
    from bot.playground.play import play  # noqa: PLC0415

    play(settings)
    return 0


def _check(settings: Settings, options: argparse.Namespace) -> int:
    from bot.check.command import run_check  # noqa: PLC0415 - as above

    # The table says what is to be said; what goes on beneath would only stand between its lines.
    configure_logs("error", settings.log_format, _secrets(settings))
    return run_check(settings, for_release=options.release)


def _ingest(settings: Settings, options: argparse.Namespace) -> int:
    from bot.ingest import run_ingest  # noqa: PLC0415 - as above

    return run_ingest(settings, options)


def _serve(settings: Settings, token: str, duty: Duty) -> int:
    raise_file_limit()
    if lacks_model_key(settings):
        log.error("no OPENAI_API_KEY is set: nobody will get an answer", look_at="OPENAI_API_KEY")
    with redis_address(settings) as redis:
        app = App(settings, token, redis, duty=duty)
        run_loop(run_until_signal(app.run))
    return 0


def _secrets(settings: Settings) -> list[str]:
    values = [getattr(settings, name) for name in Settings.model_fields]
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


if __name__ == "__main__":
    sys.exit(main())
