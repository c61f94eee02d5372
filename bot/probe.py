"""What `python -m bot check` tests, and what it says of it; plain enough for a platform's log.

An operator may show a row to anyone: it holds no secret, no error's own text and no person's text.
"""

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from memory.store.client import RedisClient
from memory.store.keys import Keys

# `unknown`: the service does not tell, and that is no reason to stop.
Verdict: TypeAlias = Literal["ok", "warn", "fail", "unknown"]


@dataclass(frozen=True, slots=True)
class Row:
    """What was tested, the verdict, what was seen, and what to do about it ("" if nothing)."""

    what: str
    verdict: Verdict
    seen: str
    advice: str = ""


Rows: TypeAlias = AsyncGenerator[Row, None]
"""What one group of checks finds; each row comes as soon as it is known."""


@dataclass(frozen=True, slots=True)
class Probe:
    """One group of checks. A feature has its own in `probes.py`, as `PROBES`."""

    name: str
    run: Callable[[Any], Rows]  # gets the settings of the bot
    is_needed: Callable[[Any], object] = lambda _: True  # else the group has no row


@dataclass(frozen=True, slots=True)
class StoreProbe:
    """A group of checks of what a bot has stored. It has no row if Redis does not answer."""

    name: str
    run: Callable[[Any, RedisClient, Keys], Rows]  # gets the settings of the bot
