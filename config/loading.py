"""Reads the settings and describes them: refusals that name a variable, and tables for READMEs.

Nothing here shows a value: it may be a secret.
"""

from collections.abc import Collection, Mapping
from typing import get_args

from annotated_types import Ge, Le
from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from config import values
from config.mcp_servers import UnreadableSetting
from config.settings import Settings

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
    "access",
    "memory_ttl_days",
)
"""The settings that the README shows; config/README.md shows all."""


class SettingsError(Exception):
    """Raised by `load_settings`; one line for each bad variable, and never its value."""


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
            if error["type"] != "default_factory_not_called"  # another line is the reason
        }
        # The cause holds the values, so it must not be shown.
        raise SettingsError("\n".join(sorted(refusals))) from None


def settings_table(names: Collection[str] = ()) -> str:
    """Return a Markdown table in the order of the class: all settings, or those of `names`."""
    rows = [("variable", "default", "allowed", "meaning"), ("---", "---", "---", "---")]
    for name, field in Settings.model_fields.items():
        if names and name not in names:
            continue
        meaning = field.description or ""
        rows.append((f"`{name.upper()}`", _default(field.default), _allowed(field), meaning))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _refusal(location: tuple[int | str, ...], context: Mapping[str, object]) -> str:
    """Return what a variable allows, or the text of a check across several variables."""
    if not location:
        return str(context["error"])
    name = str(location[0])
    error = context.get("error")
    why = f": {error}" if isinstance(error, UnreadableSetting) else ""
    return f"{name.upper()} takes {_allowed(Settings.model_fields[name])}{why}"


def _default(default: object) -> str:
    is_empty = default is PydanticUndefined or default in (None, (), frozenset())
    shown = " ".join(default) if isinstance(default, tuple) else default
    return "" if is_empty else f"`{shown}`"


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
