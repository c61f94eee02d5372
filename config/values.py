"""The kinds of value that a setting can have: how each is read, and what it allows.

A kind is an annotated type with its own `Allowed` text, which the table of settings and every
refusal show. A kind does not know the names of settings, and a refusal never repeats a value.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qs, urlsplit
from zoneinfo import ZoneInfo

from pydantic import AfterValidator, BeforeValidator, Field, FilePath, SecretStr
from pydantic_settings import NoDecode

_BOT_TOKEN = re.compile(r"(?<![0-9])[0-9]++:[A-Za-z0-9_-]++")
_WEBHOOK_SECRET = re.compile(r"[A-Za-z0-9_-]{1,256}")
_IMPORT_PATH = re.compile(r"(?<![\w.])[A-Za-z_][\w.]*+:[A-Za-z_]\w*+")
TARGET = r"private|groups|-?[0-9]{1,18}(:[0-9]{1,10})?"
"""Where something is used, as in `BEHAVIORS`: the pattern of what stands behind an `@`."""
_SCOPED_PATH = re.compile(f"{_IMPORT_PATH.pattern}(@({TARGET}|off))?")
_SENTRY_DSN = re.compile(r"https?://[^\s/@]{1,200}@[^\s/@]{1,253}/[^\s@]{1,200}")

REDIS_SCHEMES = ("redis", "rediss", "redis+cluster", "rediss+cluster", "unix")


class UnreadableSetting(ValueError):
    """Raised for a value that cannot be used; the text says why and shows no value."""


def secret_of(value: SecretStr | None) -> str | None:
    """Return the text of a secret setting; None if it is not set."""
    return value.get_secret_value() if value else None


@dataclass(frozen=True, slots=True)
class Allowed:
    """The text that says which values a kind takes."""

    text: str


class Price(NamedTuple):
    """What a model costs, in the operator's currency.

    Without a `unit` these are the prices of a million tokens. With one, `input` is the price of a
    minute of sound, of a thousand or of a million spoken characters, or of a drawn image.
    """

    model: str
    input: Decimal
    cached: Decimal = Decimal(0)
    output: Decimal = Decimal(0)
    unit: Literal["", "min", "kchar", "Mchar", "image"] = ""


def setting(default: object, description: str) -> Any:
    """Return the field of a setting whose values its type allows; a function makes its default."""
    given = {"default_factory": default} if callable(default) else {"default": default}
    return Field(**given, description=description)


def number(default: float | Decimal | None, min_: float, max_: float, description: str) -> Any:
    """Return the field of a setting that is a number between bounds."""
    return Field(default=default, ge=min_, le=max_, description=description)


def words(text: str) -> list[str]:
    """Return words that commas or spaces separate."""
    return text.replace(",", " ").split()


def _price(*words: str) -> list[str]:
    """Return the fields of a price; any that does not fit is refused by its number of fields."""
    if len(words) == 2 and "/" in words[1]:
        amount, _, unit = words[1].partition("/")
        return [words[0], amount, "0", "0", unit]
    return list(words) if len(words) == 4 else []


def _valid_prices(prices: tuple[Price, ...]) -> tuple[Price, ...]:
    if len({price.model for price in prices}) < len(prices):
        raise UnreadableSetting("a model has two prices")
    if any(amount < 0 for price in prices for amount in price[1:4]):
        raise ValueError
    return prices


def _only(accepts: Callable[[str], bool]) -> AfterValidator:
    def check(value: str | SecretStr) -> str | SecretStr:
        if not accepts(value if isinstance(value, str) else value.get_secret_value()):
            raise ValueError
        return value

    return AfterValidator(check)


def matching(pattern: re.Pattern[str]) -> AfterValidator:
    """Return a validator of texts that match a pattern from end to end."""
    return _only(lambda text: pattern.fullmatch(text) is not None)


def is_web_address(text: str) -> bool:
    """Also refuse an address with a login: we show addresses in logs and checks."""
    parts = urlsplit(text)
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and "@" not in parts.netloc


def _is_public_address(text: str) -> bool:
    parts = urlsplit(text)
    host = parts.hostname or ""
    try:
        return parts.scheme == "https" or ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _is_redis_address(text: str) -> bool:
    parts = urlsplit(text)
    target = parts.path if parts.scheme == "unix" else parts.hostname
    is_whole = bool(target) and parts.port != 0 and redis_memory_mb(text) >= 0
    return parts.scheme in REDIS_SCHEMES and is_whole


def redis_memory_mb(address: str) -> int:
    """Return `memory_mb` of an address of Redis, or 0; raise `UnreadableSetting` if it is none."""
    given = parse_qs(urlsplit(address).query).get("memory_mb", ["0"])[0]
    if not given.isdecimal() or len(given) > len("1048576"):  # a plan in bytes has more digits
        raise UnreadableSetting("memory_mb is a number of megabytes")
    return int(given)


def on_text(read: Callable[[str], object]) -> BeforeValidator:
    """Return a validator that reads a text; other values stay as they are."""
    return BeforeValidator(lambda value: read(value) if isinstance(value, str) else value)


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, OSError) as exc:  # no such zone, or the name of a folder of zones
        raise ValueError from exc


AnyCase = on_text(str.lower)

Text: TypeAlias = Annotated[str, Allowed("text")]
Reasoning: TypeAlias = Annotated[
    Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"],
    AnyCase,
    Allowed("`none`, `minimal`, `low`, `medium`, `high`, `xhigh`, `max`"),
]
Verbosity: TypeAlias = Annotated[
    Literal["low", "medium", "high"], AnyCase, Allowed("`low`, `medium`, `high`")
]
Secret: TypeAlias = Annotated[SecretStr, Allowed("text")]
BotToken: TypeAlias = Annotated[
    SecretStr, matching(_BOT_TOKEN), Allowed("a token from @BotFather: `123456:ABC…`")
]
WebhookSecret: TypeAlias = Annotated[
    SecretStr, matching(_WEBHOOK_SECRET), Allowed("1 to 256 of `A-Z a-z 0-9 _ -`")
]
SentryDsn: TypeAlias = Annotated[
    SecretStr, matching(_SENTRY_DSN), Allowed("the DSN of a project: `https://key@host/1`")
]
WebAddress: TypeAlias = Annotated[
    str,
    _only(is_web_address),
    AfterValidator(lambda address: address.rstrip("/")),
    Allowed("an `http://` or `https://` address without a login"),
]
PublicAddress: TypeAlias = Annotated[
    WebAddress,
    _only(_is_public_address),
    Allowed("an `https://` address (loopback: also `http://`)"),
]
RedisAddress: TypeAlias = Annotated[
    SecretStr,
    _only(_is_redis_address),
    Allowed(", ".join(f"`{scheme}://…`" for scheme in REDIS_SCHEMES)),
]
ModelOrOff: TypeAlias = Annotated[
    str | None,
    on_text(lambda name: None if name.lower() == "off" else name),
    Allowed("a model's name, or `off`"),
]
UserIds: TypeAlias = Annotated[
    frozenset[Annotated[int, Field(gt=0)]],
    NoDecode,
    on_text(words),
    Allowed("user ids (numbers; @userinfobot tells you yours), separated by commas or spaces"),
]
GroupIds: TypeAlias = Annotated[
    frozenset[Annotated[int, Field(lt=0)]],
    NoDecode,
    on_text(words),
    Allowed("ids of groups, all below 0, separated by commas or spaces"),
]
ImportPaths: TypeAlias = Annotated[
    tuple[Annotated[str, matching(_SCOPED_PATH)], ...],
    NoDecode,
    on_text(words),
    Allowed(
        "classes as `package.module:Class`, separated by commas or spaces; with `@private`,"
        " `@groups`, `@<chat id>` or `@<chat id>:<topic id>` one runs only there, and with"
        " `@off` only where people turn it on"
    ),
]
FeaturePaths: TypeAlias = Annotated[
    tuple[Annotated[str, matching(_IMPORT_PATH)], ...],
    NoDecode,
    on_text(words),
    Allowed("functions as `package.module:feature`, separated by commas or spaces"),
]
Prices: TypeAlias = Annotated[
    tuple[Price, ...],
    NoDecode,
    on_text(lambda text: [_price(*each.split()) for each in text.split(";") if each.strip()]),
    AfterValidator(_valid_prices),
    Allowed(
        "`model input cached output` for a million tokens each, or `model amount/unit` with the "
        "unit `min` of sound, `kchar`, `Mchar` or `image`; models separated by `;`"
    ),
]
MemoryKinds: TypeAlias = Annotated[
    tuple[Literal["state", "facts", "synopses"], ...],
    NoDecode,
    on_text(lambda kinds: [] if kinds.lower() == "off" else words(kinds)),
    Allowed("any of `state`, `facts`, `synopses`, separated by commas or spaces, or `off`"),
]
Zone: TypeAlias = Annotated[ZoneInfo, on_text(_zone), Allowed("an IANA name: `Europe/Berlin`")]
ExistingFile: TypeAlias = Annotated[FilePath, Allowed("the path of an existing file")]
Folder: TypeAlias = Annotated[
    Path, AfterValidator(Path.expanduser), Allowed("the path of a folder")
]
