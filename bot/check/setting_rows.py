"""What the settings alone tell, before any service is asked."""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

from pydantic import SecretStr

from bot.behaviors import domain_of
from bot.check.rows import Row, Rows
from bot.model.models import secret_of
from bot.own_classes import UnusableClass, agent_class, class_at, selector_class
from config.settings import Settings
from config.unknown import unknown_names
from memory.behaviors.knowledge_base import knowledge_base_model
from memory.behaviors.reach import reaches_of
from memory.text.shape import AnswerShape

_OPENAI = "api.openai.com"
_MIN_TOKEN_CHARS = 20
_MIN_TOKEN_DISTINCT = 8


async def check_settings(settings: Settings) -> Rows:
    """Yield a row that the settings were read, and one for each thing that is missing."""
    place = f"on {settings.platform}" if settings.platform else "on no platform that we know"
    intake = "by webhook" if settings.webhook_url else "by polling"
    has_file = Path(".env").is_file()  # noqa: ASYNC240 - a look at the disk
    changes = "/reload reads .env again" if has_file else "no .env to read again"
    yield Row("Settings", "ok", f"read, {place}, updates {intake}, {changes}")
    for unknown in unknown_names():
        seen = f"{unknown.name} is not a setting, so it has no effect"
        yield Row("Settings", "warn", seen, f"did you mean {unknown.nearest}?")
    if settings.telegram_bot_token is None:
        yield _missing_token(settings)
    else:
        yield _access_row(settings)
    if lacks_model_key(settings):
        yield Row("Model key", "fail", "not set", "set OPENAI_API_KEY")
    elif lacks_embedding_key(settings):
        advice = "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off"
        yield Row("Embedding key", "fail", "not set", advice)
    if lacks_fallback_key(settings):
        yield Row("Second model key", "fail", "not set", "set FALLBACK_API_KEY")
    yield _inspector_row(settings)
    if settings.knowledge_base_model is not None:
        yield _domain_row(settings)
    for row in _own_class_rows(settings):
        yield row
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


def _inspector_row(settings: Settings) -> Row:
    """Say whether `/inspect` is on, and whether its token can be guessed."""
    what, token = "Inspector", secret_of(settings.inspector_token)
    if token is None:
        return Row(what, "ok", "off: INSPECTOR_TOKEN is not set")
    if len(token) < _MIN_TOKEN_CHARS or len(set(token)) < _MIN_TOKEN_DISTINCT:
        advice = "set INSPECTOR_TOKEN to a long random text, such as `openssl rand -hex 24` prints"
        return Row(what, "warn", "on at /inspect, with a token that can be guessed", advice)
    return Row(what, "ok", "on at /inspect")


def _access_row(settings: Settings) -> Row:
    """Say who may use the bot, and what does not fit together."""
    what, people, groups = "Who may use it", settings.allowed_user_ids, settings.allowed_group_ids
    if settings.access != "open" and not settings.admin_user_ids:
        seen = f"ACCESS={settings.access}, but there is no admin who could let anybody in"
        return Row(what, "warn", seen, "set ADMIN_USER_IDS to your number")
    if settings.access == "open" and not people:
        seen = "everybody, and your key pays"
        seen += f"; in groups only in {len(groups)}" if groups else ""
        return Row(what, "warn", seen, "set ALLOWED_USER_IDS, or ACCESS to ask or invite")
    if settings.access == "open" and "access" in settings.model_fields_set:
        seen = "ACCESS=open, but only the people in ALLOWED_USER_IDS may"
        return Row(what, "warn", seen, "set only one of them, or ACCESS to ask or invite")
    others = {"open": "", "ask": ", whom an admin lets in", "invite": ", whom an admin invites"}
    seen = f"people named in the settings: {len(people | settings.admin_user_ids)}"
    seen += others[settings.access]
    is_limited = settings.access != "open" or groups
    return Row(what, "ok", f"{seen}; groups: {len(groups) if is_limited else 'all'}")


def _own_class_rows(settings: Settings) -> Iterator[Row]:
    """Say of the operator's selector and agent whether they can take the place of ours."""
    try:
        if paths := reaches_of(settings.behaviors):
            names = [class_at("BEHAVIORS", path).__name__ for path in paths]
            yield Row("Behaviors", "ok", f"found: {', '.join(names)}")
    except UnusableClass as error:
        seen, _, advice = str(error).partition("; ")
        yield Row("Behaviors", "fail", seen, advice or "see docs/behaviors.md")
    for what, named in (("Message selector", selector_class), ("Next action", agent_class)):
        try:
            if kind := named(settings):
                yield Row(what, "ok", f"{kind.__name__} takes the place of ours")
        except UnusableClass as error:
            seen, _, advice = str(error).partition("; ")
            yield Row(what, "fail", seen, advice or "see docs/behaviors.md")


def _domain_row(settings: Settings) -> Row:
    """Say whether a strict schema can describe the operator's own model."""
    what = "Domain model"
    try:
        domain = domain_of(settings)
    except UnusableClass as error:
        return Row(what, "fail", str(error), "set KNOWLEDGE_BASE_MODEL to a pydantic model")
    why = AnswerShape.of({"state": knowledge_base_model(domain)}).unconvertible.get("state")
    if why is None:
        return Row(what, "ok", "fits a strict schema")
    advice = "use flat fields without dicts; as it is, JSON mode is used instead"
    return Row(what, "warn", f"no strict schema: {why}", advice)
