"""The whole bot in one process, or the playground when there is no TELEGRAM_BOT_TOKEN."""

import argparse
import asyncio
import sys

import structlog
from pydantic import SecretStr

from bot.app import App, redis_address, until_told
from bot.logs import configure_logs
from bot.telegram.errors import BadToken
from bot.turn.system_prompt import UnusableSystemPrompt
from bot.web import PortUnavailable
from config.settings import Settings, SettingsError, load_settings
from memory.embedded import EmbeddedError
from memory.redis_client import StoreError

log = structlog.get_logger(__name__)

_REASONS = (BadToken, EmbeddedError, PortUnavailable, StoreError, UnusableSystemPrompt)


def main() -> int:
    """Run until SIGTERM or SIGINT; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bot", description=__doc__)
    parser.add_argument("command", nargs="?", choices=["demo"], help="open the playground")
    wants_demo = parser.parse_args().command == "demo"
    try:
        settings = load_settings()
    except SettingsError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    configure_logs(settings.log_level, settings.log_format, _secrets(settings))
    token = settings.telegram_bot_token
    if token is None and settings.platform:
        log.critical("cannot start", reason="TELEGRAM_BOT_TOKEN is not set")
        return 1
    try:
        if token is None or wants_demo:
            # A bot in service needs nothing of it, and would load it for a quarter of a second.
            from bot.playground.play import play  # noqa: PLC0415

            play(settings)
        else:
            serve(settings, token.get_secret_value())
    except _REASONS as error:
        log.critical("cannot start", reason=type(error).__name__, detail=str(error))
        return 1
    return 0


def serve(settings: Settings, token: str) -> None:
    """Run the bot until it is told to stop."""
    with redis_address(settings) as redis:
        is_embedded = settings.redis_url is None
        app = App(settings, token, redis, is_embedded=is_embedded, port=settings.port)
        asyncio.run(until_told(app.run))


def _secrets(settings: Settings) -> list[str]:
    values = [getattr(settings, name) for name in Settings.model_fields]
    return [value.get_secret_value() for value in values if isinstance(value, SecretStr)]


if __name__ == "__main__":
    sys.exit(main())
