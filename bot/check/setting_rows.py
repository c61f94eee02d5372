"""What the settings alone tell, before any service is asked."""

from urllib.parse import urlsplit

from pydantic import SecretStr

from bot.behaviors import UnusableBehavior, domain_of
from bot.check.rows import Row, Rows
from config.settings import Settings
from config.unknown import unknown_names
from memory.behaviors.knowledge_base import knowledge_base_model
from memory.text.shape import AnswerShape

_OPENAI = "api.openai.com"


async def check_settings(settings: Settings) -> Rows:
    """Yield a row that the settings were read, and one for each thing that is missing."""
    place = f"on {settings.platform}" if settings.platform else "on no platform that we know"
    intake = "by webhook" if settings.webhook_url else "by polling"
    yield Row("Settings", "ok", f"read, {place}, updates {intake}")
    for unknown in unknown_names():
        seen = f"{unknown.name} is not a setting, so it has no effect"
        yield Row("Settings", "warn", seen, f"did you mean {unknown.nearest}?")
    if settings.telegram_bot_token is None:
        yield _missing_token(settings)
    elif not settings.allowed_user_ids:
        advice = "set ALLOWED_USER_IDS; the bot tells people whom it refuses their number"
        yield Row("Who may use it", "warn", "everybody, and your key pays", advice)
    if lacks_model_key(settings):
        yield Row("Model key", "fail", "not set", "set OPENAI_API_KEY")
    elif lacks_embedding_key(settings):
        advice = "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off"
        yield Row("Embedding key", "fail", "not set", advice)
    if lacks_fallback_key(settings):
        yield Row("Second model key", "fail", "not set", "set FALLBACK_API_KEY")
    if settings.knowledge_base_model is not None:
        yield _domain_row(settings)
    if settings.redis_url is None and settings.platform:
        seen = "REDIS_URL is not set: an embedded Valkey keeps its data on this machine's disk"
        advice = "set REDIS_URL, unless the disk of DATA_DIR survives a deploy"
        yield Row("Data", "warn", seen, advice)


def lacks_model_key(settings: Settings) -> bool:
    """Whether the model's server needs a key and none is set."""
    return _lacks_key(settings.openai_base_url, settings.openai_api_key)


def lacks_fallback_key(settings: Settings) -> bool:
    """Whether the second model's server needs a key and none is set."""
    return settings.fallback_model is not None and _lacks_key(
        settings.fallback_base_url, settings.fallback_api_key
    )


def lacks_embedding_key(settings: Settings) -> bool:
    """Whether the embedding model's server needs a key and none is set."""
    return settings.openai_embedding_model is not None and _lacks_key(
        settings.openai_embedding_base_url, settings.openai_embedding_api_key
    )


def _lacks_key(address: str, key: SecretStr | None) -> bool:
    """Tell whether OpenAI itself is asked without a key; most servers of one's own need none."""
    return key is None and urlsplit(address).hostname == _OPENAI


def _missing_token(settings: Settings) -> Row:
    advice = "talk to @BotFather: /newbot; then set TELEGRAM_BOT_TOKEN"
    if settings.platform:
        return Row("Bot token", "fail", "not set", advice)
    return Row("Bot token", "warn", "not set: `python -m bot` opens the playground", advice)


def _domain_row(settings: Settings) -> Row:
    """Say whether a strict schema can describe the operator's own model."""
    what = "Domain model"
    try:
        domain = domain_of(settings)
    except UnusableBehavior as error:
        return Row(what, "fail", str(error), "set KNOWLEDGE_BASE_MODEL to a pydantic model")
    why = AnswerShape.of({"state": knowledge_base_model(domain)}).unconvertible.get("state")
    if why is None:
        return Row(what, "ok", "fits a strict schema")
    advice = "use flat fields without dicts; as it is, JSON mode is used instead"
    return Row(what, "warn", f"no strict schema: {why}", advice)
