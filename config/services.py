"""The settings of what the bot talks to: Telegram, the models, Redis."""

import hashlib
import hmac
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, SecretStr
from pydantic_settings import BaseSettings, SettingsConfigDict

from config import values


def _webhook_secret(chosen: dict[str, Any]) -> SecretStr | None:
    token = chosen["telegram_bot_token"]
    if token is None:
        return None
    key = token.get_secret_value().encode()
    return SecretStr(hmac.new(key, b"webhook secret", hashlib.sha256).hexdigest())


def same_as(name: str) -> Callable[[dict[str, Any]], Any]:
    """Return a default that is the value of another setting."""
    return lambda chosen: chosen[name]


def key_for(address: str) -> Callable[[dict[str, Any]], SecretStr | None]:
    """Use the main model's key, but never send it to another server."""

    def key(chosen: dict[str, Any]) -> SecretStr | None:
        api_key: SecretStr | None = chosen["openai_api_key"]
        return api_key if chosen[address] == chosen["openai_base_url"] else None

    return key


def _default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "ricordo")


class ServiceSettings(BaseSettings):
    """Telegram, the models and the store; `Settings` adds how the bot works."""

    # Only the class of all settings is ever built: `bot.features.all_settings`.
    model_config = SettingsConfigDict(defer_build=True)

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
    port: int = values.number(8080, 0, 65535, "Port of the web pages and the webhook; 0: any")
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
        default_factory=same_as("openai_model"),
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
        default_factory=same_as("openai_base_url"),
        description="Server of the second model; not set: `OPENAI_BASE_URL`",
    )
    fallback_api_key: values.Secret | None = Field(
        default_factory=key_for("fallback_base_url"),
        description="API key of the second model; not set: `OPENAI_API_KEY` if the server is the "
        "same",
    )
    openai_embedding_model: values.ModelOrOff = Field(
        default="text-embedding-3-small",
        description="Embedding model for recall; `off`: recall uses words alone",
    )
    openai_embedding_dimensions: int | None = values.number(
        None, 8, 8192, "Dimensions of an embedding; not set: the model's default"
    )
    openai_embedding_base_url: values.WebAddress = Field(
        default_factory=same_as("openai_base_url"),
        description="Server of the embedding model; not set: `OPENAI_BASE_URL`",
    )
    openai_embedding_api_key: values.Secret | None = Field(
        default_factory=key_for("openai_embedding_base_url"),
        description="API key of the embedding model; not set: `OPENAI_API_KEY` if the server is "
        "the same",
    )

    # Store
    redis_url: values.RedisAddress | None = Field(
        default=None, description="Redis or Valkey; not set: an embedded Valkey is started"
    )
    redis_max_connections: int = values.number(
        4, 2, 1000, "Connections to Redis of one process; one waits for work, of 3 one for signals"
    )
    redis_tls_verify: Annotated[Literal["auto", "always", "never"], values.AnyCase] = Field(
        default="auto", description="Check the server's certificate; `auto`: except on Heroku"
    )
    redis_memory_mb: int | None = values.number(
        None, 1, 1_048_576, "Memory of the Redis plan, if the server reports no `maxmemory`"
    )
    data_dir: values.Folder = Field(
        default_factory=_default_data_dir,
        description="Data of the embedded Valkey; not set: `~/.local/share/ricordo`",
    )
    cache_mb: int = values.number(
        64, 0, 65536, "Memory of one process for cached conversations and memories"
    )

    # Monitoring
    sentry_dsn: values.SentryDsn | None = Field(
        default=None,
        description="Sentry project that gets unexpected errors, without any text; not set: none",
    )
