"""The settings of what the bot talks to: Telegram, the models, Redis."""

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings

from config import values


def _webhook_secret(chosen: dict[str, Any]) -> SecretStr | None:
    token = chosen["telegram_bot_token"]
    if token is None:
        return None
    key = token.get_secret_value().encode()
    return SecretStr(hmac.new(key, b"webhook secret", hashlib.sha256).hexdigest())


def _same_as(name: str) -> Callable[[dict[str, Any]], Any]:
    return lambda chosen: chosen[name]


def _key_for(address: str) -> Callable[[dict[str, Any]], SecretStr | None]:
    """Use the main model's key, but never send it to another server."""

    def key(chosen: dict[str, Any]) -> SecretStr | None:
        api_key: SecretStr | None = chosen["openai_api_key"]
        return api_key if chosen[address] == chosen["openai_base_url"] else None

    return key


def _search_service(chosen: dict[str, Any]) -> str | None:
    return "https://api.search.brave.com/res/v1/web/search" if chosen["search_api_key"] else None


def _default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "ricordo")


class ServiceSettings(BaseSettings):
    """Telegram, the models and the store; `Settings` adds how the bot works."""

    # Telegram
    telegram_bot_token: values.BotToken | None = Field(
        default=None, description="The bot's token; not set: the playground opens"
    )
    telegram_api_url: values.WebAddress = Field(
        default="https://api.telegram.org", description="Bot API server"
    )
    webhook_url: values.PublicAddress | None = Field(
        default=None, description="Public base address of this bot; not set: the bot polls Telegram"
    )
    take_over_webhook: Annotated[Literal["no", "yes"], values.AnyCase] = Field(
        default="no",
        description="Whether a polling bot may delete an existing webhook; `no`: refuse to start",
    )
    webhook_secret: values.WebhookSecret | None = Field(
        default_factory=_webhook_secret,
        description="Proves that a webhook call is Telegram's; not set: derived from the token",
    )
    port: int = Field(
        default=8080, ge=0, le=65535, description="Port of the web pages and the webhook; 0: any"
    )
    inspector_token: values.Secret | None = Field(
        default=None,
        description="Secret that opens `/inspect`, the page about the running bot; not set: off",
    )
    admin_user_ids: values.UserIds = Field(
        default=frozenset(), description="People who may use the admin commands"
    )
    allowed_user_ids: values.UserIds = Field(
        default=frozenset(), description="People who may use the bot; empty: see `ACCESS`"
    )
    access: Annotated[Literal["open", "ask", "invite"], values.AnyCase] = Field(
        default="open",
        description="Who else may use the bot. `open`: everybody if `ALLOWED_USER_IDS` is empty, "
        "else nobody; `ask`: people whom an admin lets in; `invite`: people with an invitation",
    )
    allowed_group_ids: values.GroupIds = Field(
        default=frozenset(),
        description="Groups that may use the bot; empty with `ACCESS=open`: all groups",
    )

    # Models
    openai_api_key: values.Secret | None = Field(default=None, description="API key of the model")
    openai_base_url: values.WebAddress = Field(
        default="https://api.openai.com/v1",
        description="Any server with OpenAI's chat completions or Responses API",
    )
    openai_api: Annotated[Literal["auto", "chat", "responses"], values.AnyCase] = Field(
        default="auto",
        description="Chat completions or the Responses API; `auto`: the one that the server takes",
    )
    openai_model: values.Text = Field(
        default="gpt-5.4-mini", description="Model that answers people"
    )
    openai_memory_model: values.Text = Field(
        default_factory=_same_as("openai_model"),
        description="Model of internal calls (learning, narratives); not set: `OPENAI_MODEL`",
    )
    openai_reasoning: values.Reasoning | None = Field(
        default=None, description="Reasoning effort of answers; not set: the model's default"
    )
    openai_memory_reasoning: values.Reasoning | None = Field(
        default=None, description="Reasoning effort of internal calls; not set: the model's default"
    )
    openai_verbosity: values.Verbosity | None = Field(
        default=None, description="Length of answers; not set: the model's default"
    )
    openai_service_tier: values.Text | None = Field(
        default=None,
        description="Service tier of answers, such as `flex`; not set: the account's default",
    )
    openai_safety_identifier: Annotated[Literal["on", "off"], values.AnyCase] = Field(
        default="off", description="Send a hash of the person's id, so that OpenAI can tell abusers"
    )
    fallback_model: values.Text | None = Field(
        default=None,
        description="Second model, asked while the first one or its server fails; not set: none",
    )
    fallback_base_url: values.WebAddress = Field(
        default_factory=_same_as("openai_base_url"),
        description="Server of the second model; not set: `OPENAI_BASE_URL`",
    )
    fallback_api_key: values.Secret | None = Field(
        default_factory=_key_for("fallback_base_url"),
        description="API key of the second model; not set: `OPENAI_API_KEY` if the server is the "
        "same",
    )
    image_detail: Annotated[Literal["auto", "low", "high", "off"], values.AnyCase] = Field(
        default="low",
        description="How closely the model looks at photos; more takes more tokens; `off`: it "
        "sees none",
    )
    openai_embedding_model: values.EmbeddingModel = Field(
        default="text-embedding-3-small",
        description="Embedding model for recall; `off`: recall uses words alone",
    )
    openai_embedding_dimensions: int | None = Field(
        default=None,
        ge=8,
        le=8192,
        description="Dimensions of an embedding; not set: the model's default",
    )
    openai_embedding_base_url: values.WebAddress = Field(
        default_factory=_same_as("openai_base_url"),
        description="Server of the embedding model; not set: `OPENAI_BASE_URL`",
    )
    openai_embedding_api_key: values.Secret | None = Field(
        default_factory=_key_for("openai_embedding_base_url"),
        description="API key of the embedding model; not set: `OPENAI_API_KEY` if the server is "
        "the same",
    )
    transcription_model: values.EmbeddingModel = Field(
        default="gpt-transcribe",
        description="Model that writes down voice messages; `off`: the bot does not listen",
    )
    transcription_base_url: values.WebAddress = Field(
        default_factory=_same_as("openai_base_url"),
        description="Server of the transcription model; not set: `OPENAI_BASE_URL`",
    )
    transcription_api_key: values.Secret | None = Field(
        default_factory=_key_for("transcription_base_url"),
        description="API key of the transcription model; not set: `OPENAI_API_KEY` if the server "
        "is the same",
    )
    speech_model: values.EmbeddingModel = Field(
        default=None, description="Model that speaks answers to voice messages; not set: text only"
    )
    speech_voice: values.Text = Field(default="alloy", description="Voice of the speech model")
    speech_base_url: values.WebAddress = Field(
        default_factory=_same_as("openai_base_url"),
        description="Server of the speech model; not set: `OPENAI_BASE_URL`",
    )
    speech_api_key: values.Secret | None = Field(
        default_factory=_key_for("speech_base_url"),
        description="API key of the speech model; not set: `OPENAI_API_KEY` if the server is the "
        "same",
    )
    web: Annotated[Literal["off", "read"], values.AnyCase] = Field(
        default="read",
        description="Whether the model may read public web pages (`read`)",
    )
    search_api_key: values.Secret | None = Field(
        default=None, description="Key of Brave's web search API; not set: `SEARCH_URL` needs none"
    )
    search_url: values.WebAddress | None = Field(
        default_factory=_search_service,
        description="Search service for the model, if `WEB=read`: a SearXNG, or with "
        "`SEARCH_API_KEY` Brave's API; not set: Brave if there is a key, else none",
    )

    # Tools from outside
    mcp_servers: values.McpServers = Field(
        default=(), description="MCP servers whose tools the model may use"
    )

    # Store
    redis_url: values.RedisAddress | None = Field(
        default=None, description="Redis or Valkey; not set: an embedded Valkey is started"
    )
    redis_max_connections: int = Field(
        default=4,
        ge=2,
        le=1000,
        description="Connections to Redis of one process; one waits for work, of 3 one for signals",
    )
    redis_tls_verify: Annotated[Literal["auto", "always", "never"], values.AnyCase] = Field(
        default="auto", description="Check the server's certificate; `auto`: except on Heroku"
    )
    redis_memory_mb: int | None = Field(
        default=None,
        ge=1,
        le=1_048_576,
        description="Memory of the Redis plan, if the server reports no `maxmemory`",
    )
    backup_passphrase: values.Secret | None = Field(
        default=None,
        description="Encrypts backups (`backup`, `restore`); not set: a terminal is asked for it",
    )
    data_dir: values.Folder = Field(
        default_factory=_default_data_dir,
        description="Data of the embedded Valkey; not set: `~/.local/share/ricordo`",
    )
    cache_mb: int = Field(
        default=64,
        ge=0,
        le=65536,
        description="Memory of one process for cached conversations and memories",
    )

    # Monitoring
    otel_exporter_otlp_endpoint: values.WebAddress | None = Field(
        default=None,
        description="OpenTelemetry collector (HTTP) that gets traces; not set: none are made",
    )
    sentry_dsn: values.SentryDsn | None = Field(
        default=None,
        description="Sentry project that gets unexpected errors, without any text; not set: none",
    )
