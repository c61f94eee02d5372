"""Finds variables that are probably misspelt settings, because nothing else would report them.

It shows names and never a value.
"""

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from dotenv import dotenv_values

from config.settings import Settings

_ALIKE_IN_FILE = 0.6
_ALIKE_IN_ENVIRONMENT = 0.8
"""An environment is full of names for other programs, so a name must be more alike."""


@dataclass(frozen=True, slots=True)
class UnknownName:
    """A variable that is not a setting, and the setting that it resembles."""

    name: str
    nearest: str


def unknown_names(kind: type[Settings], env_file: str = ".env") -> list[UnknownName]:
    """Return variables of the environment and `env_file` that resemble a setting that is not set.

    They are in the order of their names. An `env_file` that cannot be read counts as empty.
    """
    try:
        in_file = dotenv_values(env_file)
    except (OSError, UnicodeDecodeError):
        in_file = {}
    settings = {name.upper() for name in kind.model_fields}
    # An empty value counts as not set.
    values = {**in_file, **os.environ}
    is_set = {name.upper() for name, value in values.items() if value}
    found = {
        *_alike(settings, in_file, is_set, _ALIKE_IN_FILE),
        *_alike(settings, os.environ, is_set, _ALIKE_IN_ENVIRONMENT),
    }
    return sorted(found, key=lambda unknown: unknown.name)


def _alike(
    settings: set[str], names: Iterable[str], is_set: set[str], cutoff: float
) -> Iterator[UnknownName]:
    missing = sorted(settings - is_set)
    for name in names:
        if name.upper() not in settings and not name.startswith("_"):
            near = get_close_matches(name.upper(), missing, n=5, cutoff=cutoff)
            if near:
                words = set(name.upper().split("_"))
                yield UnknownName(name, min(near, key=lambda each: len(words - {*each.split("_")})))
