"""Runs the checks side by side, each group within its time, and prints the table.

It changes nothing anywhere, and writes nothing to Redis.
"""

import asyncio
import sys
from collections.abc import Iterator
from contextlib import ExitStack, aclosing, contextmanager

import structlog

from bot.check.announcement import check_announcement
from bot.check.backups import check_backups
from bot.check.chat_model import check_chat, check_second
from bot.check.collector import check_monitoring
from bot.check.embeddings import check_embeddings
from bot.check.outside import check_outside
from bot.check.rows import Row, Rows, is_passed, table
from bot.check.setting_rows import (
    check_settings,
    lacks_embedding_key,
    lacks_fallback_key,
    lacks_model_key,
)
from bot.check.sight import check_pictures
from bot.check.speech import check_speech
from bot.check.store import check_store
from bot.check.telegram import check_telegram, check_token
from bot.check.transcription import check_transcription
from bot.check.web_search import check_web_search
from bot.runtime.process import redis_address
from config.settings import Settings
from memory.store.embedded import EmbeddedError

log = structlog.get_logger(__name__)

_GROUP_LIMIT_S = 300.0


def run_check(settings: Settings, *, for_release: bool) -> int:
    """Print the table; return 0, or 1 if something failed.

    For a release only what would make the start impossible is checked: settings, Redis, and a token
    that Telegram refuses. If Telegram cannot be reached, that must not stop a release.
    """
    with _store_address(settings) as address:
        rows = asyncio.run(_all(settings, address, for_release=for_release))
    sys.stdout.write(f"{table(rows)}\n")
    return 0 if is_passed(rows) else 1


async def bounded(name: str, rows: Rows, limit_s: float = _GROUP_LIMIT_S) -> list[Row]:
    """Return the rows of a group that came within its time."""
    found: list[Row] = []
    try:
        async with asyncio.timeout(limit_s), aclosing(rows):
            async for row in rows:
                found.append(row)  # noqa: PERF401 - the rows before a timeout count
    except TimeoutError:
        found.append(Row(name, "fail", f"not finished within {limit_s:g} s", "try again"))
    except Exception:  # the outer fence: an error in one group must not cost the others their rows
        log.exception("check failed", group=name)
        found.append(Row(name, "fail", "the check itself failed; the log says where"))
    return found


async def _all(settings: Settings, address: str | None, *, for_release: bool) -> list[Row]:
    groups = _groups(settings, address, for_release=for_release)
    found = await asyncio.gather(*(bounded(name, rows) for name, rows in groups))
    return [row for rows in found for row in rows]


def _groups(
    settings: Settings, address: str | None, *, for_release: bool
) -> Iterator[tuple[str, Rows]]:
    """Yield the groups to run; a service without its key or token has a row of the settings."""
    yield "Settings", check_settings(settings)
    yield "Redis", check_store(address, settings)
    token = settings.telegram_bot_token
    if token is not None:
        check = check_token if for_release else check_telegram
        yield "Telegram", check(settings, token.get_secret_value())
    if for_release:
        return
    if token is not None and address is not None:
        bot_id = int(token.get_secret_value().partition(":")[0])
        yield "Backup", check_backups(settings, address, bot_id)
        yield "Announcements", check_announcement(settings, address, bot_id)
    if not lacks_model_key(settings):
        yield "Model", check_chat(settings)
        yield "Photos", check_pictures(settings)
    if settings.fallback_model is not None and not lacks_fallback_key(settings):
        yield "Second model", check_second(settings)
    if not lacks_embedding_key(settings):
        yield "Embeddings", check_embeddings(settings)
    if settings.transcription_api_key is not None or not lacks_model_key(settings):
        yield "Voice messages", check_transcription(settings)
    if settings.speech_api_key is not None or not lacks_model_key(settings):
        yield "Spoken answers", check_speech(settings)
    yield "Web search", check_web_search(settings)
    yield "Tools from outside", check_outside(settings)
    yield "Monitoring", check_monitoring(settings)


@contextmanager
def _store_address(settings: Settings) -> Iterator[str | None]:
    """Yield the address of Redis, or None if the embedded server cannot start."""
    with ExitStack() as stack:
        try:
            address = stack.enter_context(redis_address(settings))
        except EmbeddedError:
            address = None
        yield address
