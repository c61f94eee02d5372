"""The bot's settings: every variable that an operator can set, with default, range and meaning.

They are read once, at start, from the environment and `.env`; an empty value counts as not set.
Reading opens no connection.
"""

import fnmatch
import hashlib
import hmac
import os
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from pydantic import SecretStr, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from config import values

PLATFORM_MARKS = {
    "DYNO": "heroku",
    "FLY_APP_NAME": "fly",
    "RAILWAY_*": "railway",
    "RENDER": "render",
}
_OF_FALLBACK = {"fallback_base_url", "fallback_api_key"}


def _webhook_secret(chosen: dict[str, Any]) -> SecretStr | None:
    token = chosen["telegram_bot_token"]
    if token is None:
        return None
    key = token.get_secret_value().encode()
    return SecretStr(hmac.new(key, b"webhook secret", hashlib.sha256).hexdigest())


def own_address(model: str) -> Any:
    """Return the field for the server of a further model; not set, it is the main model's."""
    said = f"Server of {model}; not set: `OPENAI_BASE_URL`"
    return values.setting(lambda chosen: chosen["openai_base_url"], said)


def own_key(model: str, address: str) -> Any:
    """Return the field for the key of the server that the setting `address` names.

    Not set, it is the main model's key, which is never sent to another server.
    """

    def key(chosen: dict[str, Any]) -> SecretStr | None:
        api_key: SecretStr | None = chosen["openai_api_key"]
        return api_key if chosen[address] == chosen["openai_base_url"] else None

    said = f"API key of {model}; not set: `OPENAI_API_KEY` if the server is the same"
    return values.setting(key, said)


class Settings(BaseSettings):
    """What the operator has decided; a field's variable is its name in capitals."""

    model_config = SettingsConfigDict(
        defer_build=True,  # only the class of all settings is built: `bot.features.all_settings`
        env_ignore_empty=True,
        extra="ignore",
        frozen=True,
        hide_input_in_errors=True,
        validate_default=True,
    )

    # Telegram
    telegram_bot_token: values.BotToken | None = values.setting(
        None, "The bot's token; not set: the playground opens"
    )
    telegram_api_url: values.WebAddress = values.setting(
        "https://api.telegram.org", "Bot API server"
    )
    webhook_url: values.PublicAddress | None = values.setting(
        None, "Public base address of this bot; not set: the bot polls Telegram"
    )
    take_over_webhook: Annotated[Literal["no", "yes"], values.AnyCase] = values.setting(
        "no", "Whether a polling bot may delete an existing webhook; `no`: refuse to start"
    )
    webhook_secret: values.WebhookSecret | None = values.setting(
        _webhook_secret, "Proves that a webhook call is Telegram's; not set: derived from the token"
    )
    port: int = values.number(8080, 0, 65535, "Port of the web pages and the webhook; 0: any")
    admin_user_ids: values.UserIds = values.setting(
        frozenset(), "People who may use the admin commands"
    )
    allowed_user_ids: values.UserIds = values.setting(
        frozenset(), "People who may use the bot; empty: see `ACCESS`"
    )
    access: Annotated[Literal["open", "ask", "invite"], values.AnyCase] = values.setting(
        "open",
        "Who else may use the bot. `open`: everybody if `ALLOWED_USER_IDS` is empty, "
        "else nobody; `ask`: people whom an admin lets in; `invite`: people with an invitation",
    )
    allowed_group_ids: values.GroupIds = values.setting(
        frozenset(), "Groups that may use the bot; empty with `ACCESS=open`: all groups"
    )

    # Models
    openai_api_key: values.Secret | None = values.setting(None, "API key of the model")
    openai_base_url: values.WebAddress = values.setting(
        "https://api.openai.com/v1", "Any server with OpenAI's chat completions or Responses API"
    )
    openai_api: Annotated[Literal["auto", "chat", "responses"], values.AnyCase] = values.setting(
        "auto", "Chat completions or the Responses API; `auto`: the one that the server takes"
    )
    openai_model: values.Text = values.setting("gpt-5.4-mini", "Model that answers people")
    openai_memory_model: values.Text = values.setting(
        lambda chosen: chosen["openai_model"],
        "Model of internal calls (learning, narratives); not set: `OPENAI_MODEL`",
    )
    openai_reasoning: values.Reasoning | None = values.setting(
        None, "Reasoning effort of answers; not set: the model's default"
    )
    openai_memory_reasoning: values.Reasoning | None = values.setting(
        None, "Reasoning effort of internal calls; not set: the model's default"
    )
    openai_verbosity: values.Verbosity | None = values.setting(
        None, "Length of answers; not set: the model's default"
    )
    openai_service_tier: values.Text | None = values.setting(
        None, "Service tier of answers, such as `flex`; not set: the account's default"
    )
    openai_safety_identifier: Annotated[Literal["on", "off"], values.AnyCase] = values.setting(
        "off", "Send a hash of the person's id, so that OpenAI can tell abusers"
    )
    fallback_model: values.Text | None = values.setting(
        None, "Second model, asked while the first one or its server fails; not set: none"
    )
    fallback_base_url: values.WebAddress = own_address("the second model")
    fallback_api_key: values.Secret | None = own_key("the second model", "fallback_base_url")
    openai_embedding_model: values.ModelOrOff = values.setting(
        "text-embedding-3-small", "Embedding model for recall; `off`: recall uses words alone"
    )
    openai_embedding_dimensions: int | None = values.number(
        None, 8, 8192, "Dimensions of an embedding; not set: the model's default"
    )
    openai_embedding_base_url: values.WebAddress = own_address("the embedding model")
    openai_embedding_api_key: values.Secret | None = own_key(
        "the embedding model", "openai_embedding_base_url"
    )

    # Store
    redis_url: values.RedisAddress | None = values.setting(
        None,
        "Redis or Valkey; not set: an embedded Valkey is started; "
        "`?ssl_cert_reqs=none` at the end accepts any certificate, `?memory_mb=25` (or behind `&`) "
        "tells the plan's memory if the server reports no `maxmemory`",
    )
    redis_max_connections: int = values.number(
        4, 2, 1000, "Connections to Redis of one process; one waits for work, of 3 one for signals"
    )
    data_dir: values.Folder = values.setting(
        lambda: Path(os.environ.get("XDG_DATA_HOME") or "~/.local/share", "ricordo"),
        "Data of the embedded Valkey; not set: `~/.local/share/ricordo`",
    )

    # Prompt
    window_messages: int = values.number(40, 2, 1000, "Maximum of latest messages in a prompt")
    window_tokens: int = values.number(4000, 100, 1_000_000, "Maximum tokens of these messages")
    prompt_tokens: int = values.number(
        8000, 1000, 2_000_000, "Maximum tokens of a call, reply included"
    )
    reply_tokens: int = values.number(
        1000, 50, 200_000, "Tokens of a call that are kept for the reply"
    )
    recall_k: int = values.number(48, 0, 100, "Older messages to choose from; 0: no recall")
    system_prompt_file: values.ExistingFile | None = values.setting(
        None, "File that replaces the built-in system prompt"
    )
    timezone: values.Zone = values.setting(
        ZoneInfo("UTC"), "Time zone of dates and times in prompts, unless a person has told theirs"
    )

    # Learning
    learn: values.MemoryKinds = values.setting(
        ("state", "facts", "synopses"),
        "What internal calls learn from conversations, beside the messages themselves",
    )
    learn_every_turns: int = values.number(4, 1, 100, "Learn after this many exchanges")
    learn_after_s: float = values.number(
        30, 1, 86_400, "Learn earlier after a pause of so many seconds"
    )
    recall_narrative: Annotated[Literal["off", "auto", "always"], values.AnyCase] = values.setting(
        "auto",
        "Whether a model turns recalled synopses into one dated narrative; `auto`: if "
        "two are found, once a day",
    )
    behaviors: values.ImportPaths = values.setting(
        (), "Your own memory behaviors, as `package.module:Class`"
    )
    features: values.FeaturePaths = values.setting(
        (), "Your own features, as `package.module:feature`"
    )

    # Limits of a turn
    max_steps: int = values.number(6, 1, 50, "Maximum of tool steps in a turn")
    max_calls_per_tool: int = values.number(4, 1, 50, "Maximum calls of one tool in a turn")
    tool_timeout_s: float = values.number(20, 1, 600, "Time limit of one tool call")
    model_timeout_s: float = values.number(
        60, 1, 600, "Time limit of one model call; with `FALLBACK_MODEL` the first model has half"
    )
    turn_timeout_s: float = values.number(
        180, 1, 3600, "Time limit of a whole turn, from the files it reads to those it answers with"
    )
    coalesce_s: float = values.number(
        0.5, 0, 2, "Messages that follow within this time are answered together with the first"
    )
    lease_s: float = values.number(
        30, 1, 300, "Another worker may take over a conversation so long after its worker died"
    )
    intake_wait_replicas: int = values.number(
        0, 0, 5, "Redis replicas that must have stored an update before intake accepts it"
    )

    # Quotas and rates
    user_turns_per_minute: int = values.number(
        0, 0, 1000, "Turns of one person in a minute; 0: unlimited; admins are not limited"
    )
    user_tokens_per_day: int = values.number(
        0,
        0,
        1_000_000_000,
        "Tokens of answers to one person in a day (UTC), and 10 for each second of sound; 0: "
        "unlimited; admins are not limited",
    )
    prices: values.Prices = values.setting(
        (), "Prices of models in your currency, for `/usage` and the budget"
    )
    budget_per_month: Decimal = values.number(
        Decimal(0),
        0,
        1_000_000_000,
        "Budget of the whole bot in a month (UTC); when it is spent, only admins are "
        "answered; 0: unlimited",
    )
    sends_per_second: int = values.number(
        30, 0, 1000, "Messages to Telegram per second, of all workers; 0: unlimited, also per chat"
    )
    memory_ttl_days: int = values.number(
        365, 1, 36500, "Forget a conversation after so many days without a message"
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
            raise ValueError(
                "REPLY_TOKENS must be less than half of PROMPT_TOKENS: lower it, or raise the other"
            )
        if max(self.tool_timeout_s, self.model_timeout_s) > self.turn_timeout_s:
            raise ValueError("TURN_TIMEOUT_S must be at least TOOL_TIMEOUT_S and MODEL_TIMEOUT_S")
        return self

    def models_in_use(self) -> dict[str, tuple[str, ...]]:
        """Return the models that are asked, and the units in which each is billed ("": tokens)."""
        chats = (self.openai_model, self.openai_memory_model, self.fallback_model)
        return {name: ("",) for name in (*chats, self.openai_embedding_model) if name}

    def lacks_key(self, server: str = "openai") -> bool:
        """Whether a server is OpenAI's own and no key is set; most others need none.

        `server` is what the names of its settings begin with.
        """
        address, key = getattr(self, f"{server}_base_url"), getattr(self, f"{server}_api_key")
        return key is None and urlsplit(address).hostname == "api.openai.com"

    @property
    def bot_id(self) -> int:
        """The id of the bot's account, which its token begins with; 0 without a token."""
        token = values.secret_of(self.telegram_bot_token) or "0"
        return int(token.partition(":")[0])

    @property
    def redis_memory_mb(self) -> int:
        """The memory of the Redis plan, as `REDIS_URL` tells it; 0 if it does not."""
        return values.redis_memory_mb(values.secret_of(self.redis_url) or "")

    @property
    def send_timeout_s(self) -> float:
        """How long one request that sends a message may take: at most half of a lease."""
        return min(10.0, self.lease_s / 2)

    @property
    def platform(self) -> str | None:
        """The platform that hosts this process: heroku, fly, railway, render; or None."""
        marks = PLATFORM_MARKS.items()
        return next((name for mark, name in marks if fnmatch.filter(os.environ, mark)), None)

    @property
    def verifies_redis_tls(self) -> bool:
        """Whether to check certificates if `REDIS_URL` does not say; Heroku's are self-signed."""
        return self.platform != "heroku"
