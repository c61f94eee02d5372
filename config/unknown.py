"""Finds variables that are probably misspelt settings: nobody reads them, and nothing else says so.

Shows names only, never a value.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from dotenv import dotenv_values

from config.settings import Settings

_ALIKE_IN_FILE = 0.6
_ALIKE_IN_ENVIRONMENT = 0.8
"""Closer, since an environment is full of names that are meant for others."""


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A variable that is no setting, and the setting that it resembles."""

    name: str
    nearest: str


def unknown_names(env_file: str = ".env") -> list[UnknownName]:
    """Return what in the environment and in `env_file` resembles a setting that is not set."""
    try:
        in_file = dotenv_values(env_file)
    except (OSError, UnicodeDecodeError):
        in_file = {}
    # An empty value counts as not set.
    values = {**in_file, **os.environ}
    is_set = {name.upper() for name, value in values.items() if value}
    found = {
        *_alike(in_file, is_set, _ALIKE_IN_FILE),
        *_alike(os.environ, is_set, _ALIKE_IN_ENVIRONMENT),
    }
    return sorted(found, key=lambda unknown: unknown.name)


def _alike(names: Iterable[str], is_set: set[str], cutoff: float) -> Iterator[UnknownName]:
    settings = {name.upper() for name in Settings.model_fields}
    missing = sorted(settings - is_set)
    for name in names:
        if name.upper() not in settings and not name.startswith("_"):
            for nearest in get_close_matches(name.upper(), missing, n=1, cutoff=cutoff):
                yield UnknownName(name, nearest)
