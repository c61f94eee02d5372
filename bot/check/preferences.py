"""What the settings alone tell, before anybody is asked."""

from urllib.parse import urlsplit

from bot.behaviors import UnusableBehavior, domain_of
from bot.check.rows import Row, Rows
from config.settings import Settings
from config.unknown import unknown_names
from memory.behaviors.knowledge_base import knowledge_base_model
from memory.text.shape import Shape

_OPENAI = "api.openai.com"


async def check_settings(settings: Settings) -> Rows:
    """Yield a row that they were read, and one for each thing that is missing."""
    place = f"on {settings.platform}" if settings.platform else "on no platform that we know"
    intake = "by webhook" if settings.webhook_url else "by polling"
    yield Row("Settings", "ok", f"read, {place}, updates {intake}")
    for unknown in unknown_names():
        seen = f"{unknown.name} is no setting, so nobody reads it"
        yield Row("Settings", "warn", seen, f"did you mean {unknown.nearest}?")
    if settings.telegram_bot_token is None:
        yield _missing_token(settings)
    elif not settings.allowed_user_ids:
        yield _open_to_everybody()
    if lacks_model_key(settings):
        yield Row("Model key", "fail", "not set", "set OPENAI_API_KEY")
    elif lacks_embedding_key(settings):
        yield Row(
            "Embedding key",
            "fail",
            "not set",
            "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off",
        )
    if lacks_fallback_key(settings):
        yield Row("Second model key", "fail", "not set", "set FALLBACK_API_KEY")
    if settings.knowledge_base_model is not None:
        yield _domain_row(settings)
    if settings.redis_url is None and settings.platform:
        yield Row(
            "Data",
            "warn",
            "no REDIS_URL: an embedded Valkey keeps its data on this machine's disk",
            "set REDIS_URL, unless DATA_DIR is on a disk that outlives a deploy",
        )


def lacks_model_key(settings: Settings) -> bool:
    """Whether there is no key for a server that wants one; one's own servers mostly do not."""
    return settings.openai_api_key is None and _is_openai(settings.openai_base_url)


def lacks_fallback_key(settings: Settings) -> bool:
    """Whether the second model's server wants a key, and there is none."""
    return (
        settings.fallback_model is not None
        and settings.fallback_api_key is None
        and _is_openai(settings.fallback_base_url)
    )


def lacks_embedding_key(settings: Settings) -> bool:
    """Whether vectors come from a server that wants a key, and there is none."""
    return (
        settings.openai_embedding_model is not None
        and settings.openai_embedding_api_key is None
        and _is_openai(settings.openai_embedding_base_url)
    )


def _open_to_everybody() -> Row:
    return Row(
        "Who may use it",
        "warn",
        "everybody, on your key",
        "set ALLOWED_USER_IDS; the bot tells a person whom it refuses their number",
    )


def _missing_token(settings: Settings) -> Row:
    advice = "talk to @BotFather: /newbot; set TELEGRAM_BOT_TOKEN"
    if settings.platform:
        return Row("Bot token", "fail", "not set", advice)
    return Row("Bot token", "warn", "not set: `python -m bot` opens the playground", advice)


def _domain_row(settings: Settings) -> Row:
    """Say whether the operator's own model can be asked for by a strict schema."""
    try:
        domain = domain_of(settings)
    except UnusableBehavior as error:
        return Row(
            "Domain model", "fail", str(error), "set KNOWLEDGE_BASE_MODEL to a pydantic model"
        )
    why = Shape.of({"state": knowledge_base_model(domain)}).unconvertible.get("state")
    if why is None:
        return Row("Domain model", "ok", "fits a strict schema")
    advice = "flat fields without dicts, or go on: it is asked for by JSON mode"
    return Row("Domain model", "warn", f"no strict schema: {why}", advice)


def _is_openai(address: str) -> bool:
    return urlsplit(address).hostname == _OPENAI
