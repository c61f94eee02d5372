"""The bot's settings: every variable that an operator can set, with default, range and meaning.

Read once, at start, from the environment and `.env`; an empty value counts as not set. Opens no
connection, and never shows a value: a bad one is named by its variable.
"""

import fnmatch
import hashlib
import hmac
import os
from collections.abc import Collection, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args
from zoneinfo import ZoneInfo

from annotated_types import Ge, Le
from pydantic import Field, SecretStr, ValidationError, model_validator
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings, SettingsConfigDict

from config import values

PLATFORM_MARKS = {
    "DYNO": "heroku",
    "FLY_APP_NAME": "fly",
    "RAILWAY_*": "railway",
    "RENDER": "render",
}


_OF_FALLBACK = {"fallback_base_url", "fallback_api_key"}


class SettingsError(Exception):
    """Raised by `load_settings`; one line for each bad variable, and never its value."""


def _derived_webhook_secret(chosen: dict[str, Any]) -> SecretStr | None:
    token = chosen["telegram_bot_token"]
    if token is None:
        return None
    key = token.get_secret_value().encode()
    return SecretStr(hmac.new(key, b"webhook secret", hashlib.sha256).hexdigest())


def _memory_model(chosen: dict[str, Any]) -> str:
    model: str = chosen["openai_model"]
    return model


def _embedding_base_url(chosen: dict[str, Any]) -> str:
    base_url: str = chosen["openai_base_url"]
    return base_url


def _embedding_api_key(chosen: dict[str, Any]) -> SecretStr | None:
    """Lend the model's key to its own server only."""
    api_key: SecretStr | None = chosen["openai_api_key"]
    same_server = chosen["openai_embedding_base_url"] == chosen["openai_base_url"]
    return api_key if same_server else None


def _fallback_base_url(chosen: dict[str, Any]) -> str:
    base_url: str = chosen["openai_base_url"]
    return base_url


def _fallback_api_key(chosen: dict[str, Any]) -> SecretStr | None:
    """Lend the model's key to its own server only."""
    api_key: SecretStr | None = chosen["openai_api_key"]
    same_server = chosen["fallback_base_url"] == chosen["openai_base_url"]
    return api_key if same_server else None


def _default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "ricordo")


class Settings(BaseSettings):
    """What the operator has decided; a field's variable is its name in capitals."""

    model_config = SettingsConfigDict(
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        validate_default=True,
    )

    # Telegram
    telegram_bot_token: values.BotToken | None = Field(
        default=None, description="The bot's token; without one the playground opens"
    )
    telegram_api_url: values.WebAddress = Field(
        default="https://api.telegram.org", description="Bot API server"
    )
    webhook_url: values.PublicAddress | None = Field(
        default=None, description="Public base address of this bot; without one it polls"
    )
    take_over_webhook: Annotated[Literal["no", "yes"], values.AnyCase] = Field(
        default="no",
        description="Whether a bot that polls may delete a webhook that is set; `no`: do not start",
    )
    webhook_secret: values.WebhookSecret | None = Field(
        default_factory=_derived_webhook_secret,
        description="Proves that a webhook call is Telegram's; not set: derived from the token",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Where web pages and webhook listen; 0: any free"
    )
    admin_user_ids: values.UserIds = Field(
        default=frozenset(), description="Who may use the admin commands"
    )
    allowed_user_ids: values.UserIds = Field(
        default=frozenset(), description="Who may use the bot; nobody named: everybody"
    )

    # Model
    openai_api_key: values.Secret | None = Field(default=None, description="Key of the model's API")
    openai_base_url: values.WebAddress = Field(
        default="https://api.openai.com/v1",
        description="Any server with OpenAI's chat completions or Responses",
    )
    openai_api: Annotated[Literal["auto", "chat", "responses"], values.AnyCase] = Field(
        default="auto",
        description="Chat completions or the Responses API; `auto`: what the server takes",
    )
    openai_model: values.Text = Field(default="gpt-5.4-mini", description="Model that answers")
    openai_memory_model: values.Text = Field(
        default_factory=_memory_model,
        description="Model of internal calls (learning, narrative); not set: `OPENAI_MODEL`",
    )
    openai_reasoning: values.Reasoning | None = Field(
        default=None, description="How much the model thinks; not set: as it does by itself"
    )
    openai_memory_reasoning: values.Reasoning | None = Field(
        default=None, description="How much it thinks in internal calls; not set: as by itself"
    )
    openai_verbosity: values.Verbosity | None = Field(
        default=None, description="How much the model says; sent only when set"
    )
    openai_service_tier: values.Text | None = Field(
        default=None, description="Price and speed of answers (`flex`, ...); sent only when set"
    )
    openai_safety_identifier: Annotated[Literal["on", "off"], values.AnyCase] = Field(
        default="off", description="Send a hash of the person, so that OpenAI can tell them apart"
    )
    fallback_model: values.Text | None = Field(
        default=None,
        description="Second model, asked while the first one or its server fails; not set: none",
    )
    fallback_base_url: values.WebAddress = Field(
        default_factory=_fallback_base_url,
        description="Its server; not set: `OPENAI_BASE_URL`",
    )
    fallback_api_key: values.Secret | None = Field(
        default_factory=_fallback_api_key,
        description="Its key; not set: `OPENAI_API_KEY`, if the server is the same",
    )
    openai_embedding_model: values.EmbeddingModel = Field(
        default="text-embedding-3-small", description="Model of the vectors for recall; `off`: none"
    )
    openai_embedding_dimensions: int | None = Field(
        default=None, ge=8, le=8192, description="Length of a vector; sent only when set"
    )
    openai_embedding_base_url: values.WebAddress = Field(
        default_factory=_embedding_base_url,
        description="Its server; not set: `OPENAI_BASE_URL`",
    )
    openai_embedding_api_key: values.Secret | None = Field(
        default_factory=_embedding_api_key,
        description="Its key; not set: `OPENAI_API_KEY`, if the server is the same",
    )

    # Store
    redis_url: values.RedisAddress | None = Field(
        default=None, description="Redis or Valkey; without one an embedded Valkey is started"
    )
    redis_max_connections: int = Field(
        default=4, ge=2, le=1000, description="Connections of one process; one waits for work"
    )
    redis_tls_verify: Annotated[Literal["auto", "always", "never"], values.AnyCase] = Field(
        default="auto", description="Check the server's certificate; `auto`: except on Heroku"
    )
    redis_memory_mb: int | None = Field(
        default=None,
        ge=1,
        le=1_048_576,
        description="Size of the Redis plan, where the server does not tell it",
    )
    data_dir: values.Folder = Field(
        default_factory=_default_data_dir,
        description="The embedded Valkey's data; not set: `~/.local/share/ricordo`",
    )
    cache_mb: int = Field(
        default=64, ge=0, le=65536, description="Memory for conversations kept warm in the process"
    )

    # What goes into a prompt
    window_messages: int = Field(
        default=40, ge=2, le=1000, description="Latest messages in the prompt, at most"
    )
    window_tokens: int = Field(
        default=4000, ge=100, le=1_000_000, description="Tokens of these messages, at most"
    )
    prompt_tokens: int = Field(
        default=8000, ge=1000, le=2_000_000, description="Tokens of a whole call, reply included"
    )
    reply_tokens: int = Field(
        default=1000, ge=50, le=200_000, description="Of these kept free for the reply"
    )
    recall_k: int = Field(
        default=8, ge=0, le=100, description="Older exchanges recalled for a turn, at most; 0: none"
    )
    system_prompt_file: values.ExistingFile | None = Field(
        default=None, description="Replaces the built-in system prompt"
    )
    timezone: values.Zone = Field(
        default=ZoneInfo("UTC"), description="Zone of the dates and times in prompts"
    )

    # What is learned
    learn: values.MemoryKinds = Field(
        default=("state", "facts", "synopses"),
        description="What internal calls learn of what was said, beside the messages themselves",
    )
    learn_every_turns: int = Field(
        default=4, ge=1, le=100, description="Exchanges after which something is learned of them"
    )
    learn_after_s: float = Field(
        default=30, ge=1, le=86_400, description="Quiet after which it is learned sooner"
    )
    recall_narrative: Annotated[Literal["off", "auto", "always"], values.AnyCase] = Field(
        default="auto", description="Whether recalled sittings are woven into one dated narrative"
    )
    behaviors: values.ImportPaths = Field(
        default=(), description="Your own memory behaviors, as `package.module:Class`"
    )
    knowledge_base_model: values.ImportPath | None = Field(
        default=None, description="A pydantic model that the running state keeps beside its own"
    )

    # Documents
    documents: Annotated[Literal["auto", "tool", "off"], values.AnyCase] = Field(
        default="auto",
        description="Documents: searched before each call, only by a tool, or not at all",
    )
    document_max_mb: float = Field(
        default=5, ge=0.1, le=20, description="Size of a file, at most; Telegram gives no more"
    )
    document_namespaces: values.Namespaces = Field(
        default=(), description="The operator's documents (`ingest`) that this bot may read"
    )

    # Limits of a turn
    max_steps: int = Field(default=6, ge=1, le=50, description="Tool steps of a turn, at most")
    max_calls_per_tool: int = Field(
        default=4, ge=1, le=50, description="Calls of one tool in a turn, at most"
    )
    tool_timeout_s: float = Field(default=20, ge=1, le=600, description="Time for one tool call")
    model_timeout_s: float = Field(
        default=60,
        ge=1,
        le=600,
        description="Time for one model call; with `FALLBACK_MODEL` the first has half of it",
    )
    turn_timeout_s: float = Field(default=180, ge=1, le=3600, description="Time for a whole turn")
    coalesce_s: float = Field(
        default=0.5, ge=0, le=2, description="Wait for more messages to answer at once"
    )
    lease_s: float = Field(
        default=30, ge=1, le=300, description="A dead worker's conversation is free after this"
    )
    max_concurrent_turns: int = Field(
        default=32, ge=1, le=1000, description="Conversations worked on at once by one process"
    )
    max_turns_per_person: int = Field(
        default=4,
        ge=1,
        le=1000,
        description="Of these for one person, over all chats; what else they ask waits",
    )
    max_uploads_per_person: int = Field(
        default=1, ge=1, le=1000, description="Files of one person read at once by one process"
    )
    max_pending_conversations: int = Field(
        default=10_000,
        ge=0,
        le=10_000_000,
        description="Bells not answered yet; beyond, Telegram keeps what comes; 0: no bound",
    )
    intake_wait_replicas: int = Field(
        default=0,
        ge=0,
        le=5,
        description="Replicas that must have an update before Telegram is told that it arrived",
    )
    user_turns_per_minute: int = Field(
        default=0, ge=0, le=1000, description="Answers to one person, except admins; 0: no bound"
    )
    user_tokens_per_day: int = Field(
        default=0,
        ge=0,
        le=1_000_000_000,
        description="Tokens of answers to one person, a day of UTC, except admins; 0: no bound",
    )
    prices: values.Prices = Field(
        default=(),
        description="What models cost, in your currency, for `/usage` and the budget",
    )
    budget_per_month: Decimal = Field(
        default=Decimal(0),
        ge=0,
        le=1_000_000_000,
        description="Money for the whole bot, a month of UTC; beyond, only admins are answered; "
        "0: no bound",
    )
    sends_per_second: int = Field(
        default=30,
        ge=0,
        le=1000,
        description="Messages to Telegram by all workers; 0: as fast as can be, in each chat too",
    )
    memory_ttl_days: int = Field(
        default=365, ge=1, le=36500, description="A conversation silent for so long is forgotten"
    )

    # What operators see
    metrics_token: values.Secret | None = Field(
        default=None,
        description="Bearer for `/metrics`; not set: this machine alone, on a platform nobody",
    )
    log_level: Annotated[Literal["debug", "info", "warning", "error"], values.AnyCase] = Field(
        default="info", description="Least level that is logged"
    )
    log_format: Annotated[Literal["auto", "json", "pretty"], values.AnyCase] = Field(
        default="auto", description="`auto`: pretty on a terminal, else JSON"
    )

    @model_validator(mode="before")
    @classmethod
    def _drop_blanks(cls, given: dict[str, object]) -> dict[str, object]:
        stripped = ((k, v.strip() if isinstance(v, str) else v) for k, v in given.items())
        return {name: value for name, value in stripped if value != ""}

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if self.webhook_url and not self.telegram_bot_token:
            raise ValueError("WEBHOOK_URL needs TELEGRAM_BOT_TOKEN")
        if self.model_fields_set & _OF_FALLBACK and not self.fallback_model:
            raise ValueError("FALLBACK_BASE_URL and FALLBACK_API_KEY need FALLBACK_MODEL")
        if self.budget_per_month and not self.prices:
            raise ValueError("BUDGET_PER_MONTH needs PRICES")
        if self.reply_tokens >= self.prompt_tokens / 2:
            raise ValueError("REPLY_TOKENS must be less than half of PROMPT_TOKENS")
        if max(self.tool_timeout_s, self.model_timeout_s) > self.turn_timeout_s:
            raise ValueError("TURN_TIMEOUT_S must cover TOOL_TIMEOUT_S and MODEL_TIMEOUT_S")
        return self

    @property
    def platform(self) -> str | None:
        """The platform this process is hosted on: heroku, fly, railway, render; or None."""
        for mark, name in PLATFORM_MARKS.items():
            if fnmatch.filter(os.environ, mark):
                return name
        return None

    @property
    def verifies_redis_tls(self) -> bool:
        """Whether the certificate of a `rediss://` server is checked; Heroku's are self-signed."""
        if self.redis_tls_verify == "auto":
            return self.platform != "heroku"
        return self.redis_tls_verify == "always"


def load_settings(env_file: str | None = ".env") -> Settings:
    """Read the environment and `env_file` (the environment wins); raise one `SettingsError`."""
    try:
        return Settings(_env_file=env_file)
    except OSError as exc:
        raise SettingsError(f"{env_file} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{env_file} is not UTF-8 text: save it as UTF-8") from None
    except ValidationError as exc:
        refusals = {
            _refusal(error["loc"], error.get("ctx", {}))
            for error in exc.errors()
            if error["type"] != "default_factory_not_called"  # follows from another line
        }
        raise SettingsError("\n".join(sorted(refusals))) from None  # the cause knows the values


README_SETTINGS = (
    "telegram_bot_token",
    "openai_api_key",
    "openai_base_url",
    "openai_model",
    "openai_embedding_model",
    "redis_url",
    "webhook_url",
    "admin_user_ids",
    "allowed_user_ids",
    "memory_ttl_days",
)
"""The settings that the README shows; config/README.md shows all."""


def settings_table(names: Collection[str] = ()) -> str:
    """Render a Markdown table in the order of the class: all settings, or those of `names`."""
    rows = [("variable", "default", "allowed", "meaning"), ("---", "---", "---", "---")]
    for name, field in Settings.model_fields.items():
        if names and name not in names:
            continue
        meaning = field.description or ""
        rows.append((f"`{name.upper()}`", _shown(field.default), _allowed(field), meaning))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _refusal(place: tuple[int | str, ...], context: Mapping[str, object]) -> str:
    """Say what is allowed: a field's own text, or the words of a check across fields."""
    if not place:
        return str(context["error"])
    name = str(place[0])
    return f"{name.upper()} takes {_allowed(Settings.model_fields[name])}"


def _shown(default: object) -> str:
    nothing = default is PydanticUndefined or default in (None, (), frozenset())
    shown = " ".join(default) if isinstance(default, tuple) else default
    return "" if nothing else f"`{shown}`"


def _allowed(field: FieldInfo) -> str:
    marks = [*field.metadata]
    for part in get_args(field.annotation):
        marks += getattr(part, "__metadata__", ())
    if texts := [mark.text for mark in marks if isinstance(mark, values.Allowed)]:
        return str(texts[-1])
    bounds = [
        mark.ge if isinstance(mark, Ge) else mark.le for mark in marks if isinstance(mark, Ge | Le)
    ]
    if bounds:
        return " to ".join(str(bound) for bound in bounds)
    return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
