"""`python -m bot check` runs the checks side by side, each group within its time; prints a table.

It changes nothing anywhere, and writes nothing to Redis.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, aclosing, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from bot.feature import Subcommands
from bot.features import modules
from bot.features.check.advice import name_shared_server, trouble
from bot.features.check.chat_model import check_chat, check_second
from bot.features.check.embeddings import COMPARISON, check_embeddings
from bot.features.check.store import MAX_CONNECTIONS, STORED_DATA, check_store
from bot.features.check.telegram import check_telegram
from bot.model.model_errors import ModelError
from bot.operator_classes import UnusableClass, class_at, found_at, found_beside
from bot.probe import Probe, Row, Rows, StoreProbe
from bot.prompt.assemble import UnusableSystemPrompt, load_system_prompt
from bot.runtime.logs import configure_logs
from bot.runtime.process import open_store, redis_address
from config.loading import secrets_of, unknown_names
from config.settings import Settings
from memory.behaviors.behavior import reaches_of
from memory.store.embedded import EmbeddedError
from memory.store.errors import StoreError, StoreRefused
from memory.store.keys import Keys

log = structlog.get_logger(__name__)

_GROUP_LIMIT_S = 300.0


def add_commands(commands: Subcommands) -> None:
    """Add the command."""
    check = commands.add_parser("check", help="test settings and every outside service")
    check.set_defaults(command=run_check)
    check.add_argument("--release", action="store_true", help="test only what prevents a start")
    check.add_argument(
        "--compare-embeddings",
        action="store_true",
        help="measure vectors against words alone on what is stored; shows only counts",
    )


def run_check(settings: Settings, options: argparse.Namespace) -> int:
    """Print the table; return 0, or 1 if something failed.

    For a release only what would make the start impossible is checked: settings, Redis, and a token
    that Telegram refuses. If Telegram cannot be reached, that must not stop a release.
    """
    # Log lines would stand between the rows of the table, and the table already names the errors.
    configure_logs("error", secrets_of(settings))
    with ExitStack() as stack:
        address: str | EmbeddedError
        try:
            address = stack.enter_context(redis_address(settings))
        except EmbeddedError as error:
            address = error
        groups = [("Redis", check_store(address, settings))]
        if options.compare_embeddings:
            groups.append((COMPARISON.name, _stored(COMPARISON, settings, address)))
        else:
            groups = [*_groups(settings, address, is_release=options.release)]
        rows = asyncio.run(_gathered(groups))
    steps = "" if options.release or options.compare_embeddings else f"\n{next_steps(rows)}\n"
    sys.stdout.write(f"{table(rows)}\n{steps}")
    return 0 if is_passed(rows) else 1


def all_probes(theirs: Sequence[str] = ()) -> list[Probe | StoreProbe]:
    """Return what `check` tests for our features, also those that are off, and those at `theirs`.

    Raise `UnusableClass` if the `PROBES` of one of these cannot be used.
    """
    ours = (probe for module in modules("probes") for probe in module.PROBES)

    def are_probes(named: Any) -> bool:
        kinds = Probe | StoreProbe
        return isinstance(named, tuple) and all(isinstance(each, kinds) for each in named)

    named = found_beside(theirs, "PROBES", are_probes, "tuple of `Probe` or `StoreProbe`")
    return [*ours, *(probe for probes in named for probe in probes)]


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


async def _gathered(groups: Iterable[tuple[str, Rows]]) -> list[Row]:
    found = await asyncio.gather(*(bounded(name, rows) for name, rows in groups))
    return [row for rows in found for row in rows]


def _groups(
    settings: Settings, address: str | EmbeddedError, *, is_release: bool
) -> Iterator[tuple[str, Rows]]:
    """Yield the groups to run; a service without its key or token has a row of the settings."""
    yield "Settings", check_settings(settings)
    yield "Redis", check_store(address, settings)
    yield STORED_DATA.name, _stored(STORED_DATA, settings, address)
    if token := settings.telegram_bot_token:
        check = check_telegram(settings, token.get_secret_value(), is_release=is_release)
        yield "Telegram", check
    if is_release:
        return
    probes = all_probes(settings.features)
    stored = (each for each in probes if isinstance(each, StoreProbe))
    yield from ((each.name, _stored(each, settings, address)) for each in stored)
    if not settings.lacks_key():
        yield "Model", check_chat(settings)
    if settings.fallback_model is not None and not settings.lacks_key("fallback"):
        yield "Second model", check_second(settings)
    if not _lacks_embedding_key(settings):
        yield "Embeddings", check_embeddings(settings)
    others = (each for each in probes if isinstance(each, Probe))
    yield from ((each.name, run_probe(each, settings)) for each in others)


async def run_probe(probe: Probe, settings: Settings) -> Rows:
    """Yield the rows of a probe if it is needed; if its model fails, only a warning."""
    if not probe.is_needed(settings):
        return
    try:
        async for row in probe.run(settings):
            yield row
    except ModelError as error:
        row = name_shared_server(trouble(probe.name, error, probe.model), settings, probe.model)
        yield replace(row, verdict="warn", advice=f"{row.advice}{probe.advice}")


def _lacks_embedding_key(settings: Settings) -> bool:
    return settings.openai_embedding_model is not None and settings.lacks_key("openai_embedding")


async def _stored(probe: StoreProbe, settings: Settings, address: str | EmbeddedError) -> Rows:
    """Yield the rows of a probe; none without a token or Redis, which have rows of their own."""
    if settings.telegram_bot_token is None or isinstance(address, EmbeddedError):
        return
    with suppress(StoreError):
        async with open_store(address, settings, MAX_CONNECTIONS) as client:
            try:
                async for row in probe.run(settings, client, Keys(settings.bot_id)):
                    yield row
            except StoreRefused:
                advice = "let the user of REDIS_URL run all commands on all keys"
                yield Row(probe.name, "fail", "the server refused a command", advice)


_MARK_WIDTH = 7
_STEPS = 3
_BY_URGENCY = ("fail", "warn", "ok", "unknown")


def is_passed(rows: Sequence[Row]) -> bool:
    """Whether nothing failed."""
    return all(row.verdict != "fail" for row in rows)


def table(rows: Sequence[Row]) -> str:
    """Return a line for each row, its advice on the next line, and a summary at the end."""
    width = max((len(row.what) for row in rows), default=0)
    lines = []
    for row in rows:
        mark = "FAIL" if row.verdict == "fail" else row.verdict
        lines.append(f"{mark:<{_MARK_WIDTH}}  {row.what:<{width}}  {row.seen}")
        if row.advice:
            lines.append(f"{'':<{_MARK_WIDTH}}  {'':<{width}}  -> {row.advice}")
    count = Counter(row.verdict for row in rows)
    parts = [f"{count['ok']} ok"]
    parts += [f"{count[verdict]} {verdict}" for verdict in ("warn", "unknown") if count[verdict]]
    parts.append(f"{count['fail']} failed")
    return "\n".join([*lines, "", ", ".join(parts)])


def next_steps(rows: Sequence[Row]) -> str:
    """Return the three most useful things to do: what failed, what has a price, what is offered."""
    ordered = [row for verdict in _BY_URGENCY for row in rows if row.verdict == verdict]
    # First a variable without effect: its setting may be what is missing.
    renaming = next((row for row in ordered if row.what == "Settings"), None)
    ordered.sort(key=lambda row: row is not renaming)
    steps = [f"{row.what}: {row.advice}" for row in ordered if row.advice]
    if is_passed(rows) and any(row.what == "Telegram" for row in rows):
        steps.insert(0, "start the bot, and write /start to it")
    lines = [f"{number}. {step}" for number, step in enumerate(steps[:_STEPS], 1)]
    return "\n".join(["Next:", *lines]) if lines else "Nothing is left to do."


async def check_settings(settings: Settings) -> Rows:
    """Yield a row that the settings were read, and one for each thing that is missing."""
    place = f"on {settings.platform}" if settings.platform else "this machine"
    intake = "by webhook" if settings.webhook_url else "by polling"
    has_file = Path(".env").is_file()  # noqa: ASYNC240 - a look at the disk
    changes = "/reload reads .env again" if has_file else "no .env file"
    yield Row("Settings", "ok", f"read, {place}, updates {intake}, {changes}")
    for name, advice in unknown_names(type(settings)):
        yield Row("Settings", "warn", f"{name} is not a setting, so it has no effect", advice)
    for row in _bot_rows(settings):
        yield row
    if settings.lacks_key():
        yield Row("Model key", "fail", "not set", "set OPENAI_API_KEY")
    elif _lacks_embedding_key(settings):
        advice = "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off"
        yield Row("Embedding key", "fail", "not set", advice)
    if settings.fallback_model is not None and settings.lacks_key("fallback"):
        yield Row("Second model key", "fail", "not set", "set FALLBACK_API_KEY")
    units = {price.model: price.unit for price in settings.prices}
    used = settings.models_in_use() if settings.budget_per_month else {}
    if missing := [name for name, billed in used.items() if units.get(name) not in billed]:
        seen = f"BUDGET_PER_MONTH does not count {', '.join(missing)}"
        yield Row("Prices", "warn", seen, "give each a price in PRICES, 0 if it costs nothing")
    for row in _own_class_rows(settings):
        yield row
    if settings.redis_url is None and settings.platform:
        seen = "REDIS_URL is not set: an embedded Valkey keeps its data on this machine's disk"
        advice = "set REDIS_URL, unless the disk of DATA_DIR survives a deploy"
        yield Row("Data", "warn", seen, advice)


def _bot_rows(settings: Settings) -> Iterator[Row]:
    advice = "talk to @BotFather: /newbot; then set TELEGRAM_BOT_TOKEN"
    if settings.telegram_bot_token is None and settings.platform:
        yield Row("Bot token", "fail", "not set", advice)
    elif settings.telegram_bot_token is None:
        yield Row("Bot token", "warn", "not set: `python -m bot` opens the playground", advice)
    elif not settings.admin_user_ids:
        advice = "set ADMIN_USER_IDS to your number, which @userinfobot tells you"
        yield Row("Operators", "ok", "none: nobody hears of trouble in Telegram", advice)


def _own_class_rows(settings: Settings) -> Iterator[Row]:
    own = {"behaviors": [*reaches_of(settings.behaviors)], "features": settings.features}
    for kind, paths in own.items():
        find = class_at if kind == "behaviors" else found_at
        try:
            for path in paths:
                find(kind.upper(), path)
            if paths:
                yield Row(kind.capitalize(), "ok", f"found: {', '.join(paths)}")
        except UnusableClass as error:
            seen, _, advice = str(error).partition("; ")
            yield Row(kind.capitalize(), "fail", seen, advice or f"see docs/{kind}.md")
    try:
        load_system_prompt(settings.system_prompt_file)
    except UnusableSystemPrompt as error:
        yield Row("System prompt", "fail", str(error), "mend it, or name another file")
