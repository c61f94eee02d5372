"""Reads the settings again while the bot runs; a few of them take effect at once.

Code that uses one of these reads it from the settings each time, and keeps no copy.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from config.loading import SettingsError, load_settings
from config.settings import Settings

RELOADED = frozenset(
    {
        "admin_user_ids",
        "allowed_user_ids",
        "allowed_group_ids",
        "user_turns_per_minute",
        "user_tokens_per_day",
        "prices",
        "budget_per_month",
        "system_prompt_file",
        "log_level",
    }
)
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
