"""Reads the settings, and says what each takes: a refusal names the variable.

It also finds variables that are probably misspelt settings, because nothing else would report them,
and reads the settings again while the bot runs: a few of them take effect at once. Code that uses
one of these reads it from the settings each time, and keeps no copy.

Nothing here shows a value: it may be a secret.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from difflib import get_close_matches
from itertools import chain
from pathlib import Path
from typing import get_args

from annotated_types import Ge, Le
from dotenv import dotenv_values
from pydantic import SecretStr, ValidationError
from pydantic.fields import FieldInfo

from config import values
from config.settings import Settings

_MIN_SECRET_CHARS = 16  # a shorter secret may stand in other values by chance
_hidden: dict[str, str] = {}
"""Variables that were taken out of the environment of this process, for the next reading."""


class SettingsError(Exception):
    """Raised by `load_settings`; one line for each bad variable, and never its value."""


def load_settings(env_file: str | None = ".env", kind: type[Settings] = Settings) -> Settings:
    """Read the environment and `env_file` (the environment wins); raise one `SettingsError`.

    `kind` is the class with the settings of features, too.
    """
    os.environ.update(_hidden)
    try:
        return kind(_env_file=env_file)
    except OSError as exc:
        raise SettingsError(f"{env_file} cannot be read: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise SettingsError(f"{env_file} is not UTF-8 text: save it as UTF-8") from None
    except ValidationError as exc:
        refusals = {
            _refusal(kind, error["loc"], error.get("ctx", {}))
            for error in exc.errors()
            if error["type"] != "default_factory_not_called"  # another line is the reason
        }
        # The cause holds the values, so it must not be shown.
        raise SettingsError("\n".join(sorted(refusals))) from None
    finally:
        for name in _hidden:
            os.environ.pop(name, None)


def secrets_of(settings: Settings) -> list[str]:
    """Return all values that no log may show."""
    given = (getattr(settings, name) for name in type(settings).model_fields)
    return [secret.get_secret_value() for value in given for secret in _secrets_in(value)]


def hide_secrets(settings: Settings) -> None:
    """Take the secrets out of the environment, where programs that we start would find them.

    `load_settings` still knows them.
    """
    given = {name: getattr(settings, name) for name in type(settings).model_fields}
    secret = {name for name, value in given.items() if isinstance(value, SecretStr)}
    secrets = [each for each in secrets_of(settings) if len(each) >= _MIN_SECRET_CHARS]
    for name, value in list(os.environ.items()):
        if name.lower() in secret or any(each in value for each in secrets):
            _hidden[name] = os.environ.pop(name)


def _secrets_in(value: object) -> Iterator[SecretStr]:
    if isinstance(value, SecretStr):
        yield value
    elif isinstance(value, tuple):
        yield from chain.from_iterable(map(_secrets_in, value))
    elif is_dataclass(value):
        yield from _secrets_in(tuple(getattr(value, each.name) for each in fields(value)))


def _refusal(
    kind: type[Settings], location: tuple[int | str, ...], context: Mapping[str, object]
) -> str:
    if not location:
        return str(context["error"])
    name = str(location[0])
    error = context.get("error")
    why = f": {error}" if isinstance(error, values.UnreadableSetting) else ""
    return f"{name.upper()} takes {allowed(kind.model_fields[name])}{why}"


def allowed(field: FieldInfo) -> str:
    """Return which values a setting takes, as a table and a refusal say it."""
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


_ALIKE_IN_FILE = 0.6
_ALIKE_IN_ENVIRONMENT = 0.8
"""An environment is full of names for other programs, so a name must be more alike."""


_GONE = dict.fromkeys(("CACHE_MB", "LOG_FORMAT"), "it is a constant now") | {
    "LOG_LEVEL": "it is always `info` now",
    "ATTACHABLE_BEHAVIORS": "name each class in BEHAVIORS, as `package.module:Class@off`",
    "MAX_CONCURRENT_TURNS": "the limit is always 32 now",
    "MAX_DOCUMENT_MB": "it is 20 now, as much as Telegram lets bots fetch",
    "MAX_PENDING_CONVERSATIONS": "the limit is always 10,000 now",
    "MAX_TURNS_PER_PERSON": "the limit is always 4 now",
    "REDIS_MEMORY_MB": "end REDIS_URL with `?memory_mb=` and its number instead",
    "REDIS_TLS_VERIFY": "end REDIS_URL with `?ssl_cert_reqs=none` or `required` instead",
    "RICH_MESSAGES": "a feature of yours has `sends_rich=True` for that: docs/features.md",
    "SEARCH_API_KEY": "set SEARCH to this key instead",
    "SEARCH_URL": "set SEARCH to this address instead",
}
"""Settings of earlier releases, and what holds in their place."""


def unknown_names(kind: type[Settings], env_file: str = ".env") -> list[tuple[str, str]]:
    """Return variables of the environment and `env_file` that have no effect, each with advice.

    Each resembles a setting that is not set, or was a setting once. They are in the order of their
    names. An `env_file` that cannot be read counts as empty.
    """
    try:
        in_file = dotenv_values(env_file)
    except (OSError, UnicodeDecodeError):
        in_file = {}
    settings = {name.upper() for name in kind.model_fields}
    # An empty value counts as not set.
    given = {**in_file, **os.environ}
    is_set = {name.upper() for name, value in given.items() if value}
    found = [(name, f"remove {name}: {_GONE[name]}") for name in _GONE.keys() & is_set]
    for name in given:
        if name.upper() not in {*settings, *_GONE} and not name.startswith("_"):
            cutoff = _ALIKE_IN_FILE if name in in_file else _ALIKE_IN_ENVIRONMENT
            near = get_close_matches(name.upper(), sorted(settings - is_set), n=5, cutoff=cutoff)
            if near:
                words = set(name.upper().split("_"))
                nearest = min(near, key=lambda each: len(words - {*each.split("_")}))
                found.append((name, f"if you mean {nearest}, rename {name} to {nearest}"))
    return sorted(found)


RELOADED = frozenset(
    ("admin_user_ids", "allowed_user_ids", "allowed_group_ids", "user_turns_per_minute")
) | {"user_tokens_per_day", "prices", "budget_per_month", "system_prompt_file"}
"""The settings that take effect without a restart."""


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What a reload did. It names variables and never a value.

    `changed` took effect, `waiting` need a restart. With a `refusal` nothing changed; it says why.
    Without a file there was `nothing_to_read`.
    """

    changed: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    refusal: str = ""
    nothing_to_read: bool = False


def reload_settings(
    settings: Settings, env_file: str, prepare: Callable[[Settings], None]
) -> Reloaded:
    """Read the environment and `env_file` again, and change `settings` in place.

    `prepare` is called with the new settings before anything changes; it may refuse them with
    `SettingsError`. The environment wins over the file, as at the start.
    """
    if not Path(env_file).is_file():
        return Reloaded(nothing_to_read=True)
    try:
        new = load_settings(env_file, type(settings))
        prepare(new)
    except SettingsError as error:
        return Reloaded(refusal=str(error))
    # A value that is derived from another one is not named beside it.
    names = sorted(settings.model_fields_set | new.model_fields_set)
    differing = [name for name in names if getattr(settings, name) != getattr(new, name)]
    for name in RELOADED:
        # The class is frozen, because nothing else may change it.
        settings.__dict__[name] = getattr(new, name)
    settings.model_fields_set.difference_update(RELOADED)
    settings.model_fields_set.update(RELOADED & new.model_fields_set)
    changed = tuple(name.upper() for name in differing if name in RELOADED)
    waiting = tuple(name.upper() for name in differing if name not in RELOADED)
    return Reloaded(changed, waiting)
