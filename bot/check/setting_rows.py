"""What the settings alone tell, before any service is asked."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from bot.metrics.monitoring import REPORTS_NEED, how_to_install
from bot.model.models import lacks_embedding_key, lacks_fallback_key, lacks_model_key
from bot.operator_classes import UnusableClass, class_at, found_at
from bot.probe import Row, Rows
from config.settings import Settings
from config.unknown import unknown_names
from memory.behaviors.behavior import reaches_of


async def check_settings(settings: Settings) -> Rows:
    """Yield a row that the settings were read, and one for each thing that is missing."""
    place = f"on {settings.platform}" if settings.platform else "this machine"
    intake = "by webhook" if settings.webhook_url else "by polling"
    has_file = Path(".env").is_file()  # noqa: ASYNC240 - a look at the disk
    changes = "/reload reads .env again" if has_file else "no .env file"
    yield Row("Settings", "ok", f"read, {place}, updates {intake}, {changes}")
    for unknown in unknown_names(type(settings)):
        seen = f"{unknown.name} is not a setting, so it has no effect"
        yield Row("Settings", "warn", seen, f"did you mean {unknown.nearest}?")
    for row in _bot_rows(settings):
        yield row
    if lacks_model_key(settings):
        yield Row("Model key", "fail", "not set", "set OPENAI_API_KEY")
    elif lacks_embedding_key(settings):
        advice = "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off"
        yield Row("Embedding key", "fail", "not set", advice)
    if lacks_fallback_key(settings):
        yield Row("Second model key", "fail", "not set", "set FALLBACK_API_KEY")
    if price := _price_row(settings):
        yield price
    if settings.sentry_dsn is not None:
        yield _reports_row(settings.sentry_dsn)
    for row in _own_class_rows(settings):
        yield row
    if settings.redis_url is None and settings.platform:
        seen = "REDIS_URL is not set: an embedded Valkey keeps its data on this machine's disk"
        advice = "set REDIS_URL, unless the disk of DATA_DIR survives a deploy"
        yield Row("Data", "warn", seen, advice)


def _bot_rows(settings: Settings) -> Iterator[Row]:
    """Say if there is no bot yet, or nobody to tell of its trouble."""
    advice = "talk to @BotFather: /newbot; then set TELEGRAM_BOT_TOKEN"
    if settings.telegram_bot_token is None and settings.platform:
        yield Row("Bot token", "fail", "not set", advice)
    elif settings.telegram_bot_token is None:
        yield Row("Bot token", "warn", "not set: `python -m bot` opens the playground", advice)
    elif not settings.admin_user_ids:
        advice = "set ADMIN_USER_IDS to your number, which @userinfobot tells you"
        yield Row("Operators", "ok", "none: nobody hears of trouble in Telegram", advice)


def _price_row(settings: Settings) -> Row | None:
    """Name the models that the budget cannot count."""
    if not settings.budget_per_month:
        return None
    units = {price.model: price.unit for price in settings.prices}
    used = settings.models_in_use()
    missing = [name for name, billed in used.items() if units.get(name) not in billed]
    if not missing:
        return None
    seen = f"BUDGET_PER_MONTH does not count {', '.join(missing)}"
    return Row("Prices", "warn", seen, "give each a price in PRICES, 0 if it costs nothing")


def _reports_row(dsn: SecretStr) -> Row:
    """Say where error reports go, and whether the package for them is here."""
    what, host = "Error reports", urlsplit(dsn.get_secret_value()).hostname
    if find_spec("sentry_sdk") is None:
        return Row(what, "warn", "package missing", how_to_install(REPORTS_NEED))
    return Row(what, "ok", f"on, to {host}; not tested, because that would report an error")


def _own_class_rows(settings: Settings) -> Iterator[Row]:
    """Say whether the operator's behaviors and features are found."""
    try:
        if paths := reaches_of(settings.behaviors):
            names = [class_at("BEHAVIORS", path).__name__ for path in paths]
            yield Row("Behaviors", "ok", f"found: {', '.join(names)}")
    except UnusableClass as error:
        seen, _, advice = str(error).partition("; ")
        yield Row("Behaviors", "fail", seen, advice or "see docs/behaviors.md")
    try:
        for path in settings.features:
            found_at("FEATURES", path)
        if settings.features:
            yield Row("Features", "ok", f"found: {', '.join(settings.features)}")
    except UnusableClass as error:
        seen, _, advice = str(error).partition("; ")
        yield Row("Features", "fail", seen, advice or "see docs/features.md")
