"""Billed tokens as values: by source, and the months in which they are summed up."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from secrets import token_hex
from time import time

MONTHS = 3
"""How many months' sums exist at a time."""

HEARD, SPOKEN, DRAWN = "heard_s", "spoken_chars", "drawn_images"
"""Kinds of sources with another unit: seconds of sound, characters, and images."""


@dataclass(frozen=True, slots=True)
class BillingSource:
    """What was billed: `kind` is that of the call, such as `answer` or `internal`.

    `kind` may also be `HEARD`, `SPOKEN` or `DRAWN`, which are not billed by tokens. `is_second`
    says that it was the second model.
    """

    kind: str
    model: str
    is_second: bool = False

    @classmethod
    def of(cls, name: str) -> "BillingSource":
        """Read the name of a field."""
        kind, number, model = name.split("|", 2)
        return cls(kind, model, number == "2")

    def __str__(self) -> str:
        """Return the name of its field."""
        return f"{self.kind}|{2 if self.is_second else 1}|{self.model}"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Billed tokens; `reasoning` is a part of `output`, `fresh` is the input without `cached`.

    Of a source that is not billed by tokens, `reasoning` is the amount in its unit. So it is in no
    sum of tokens, and processes of older versions can read it.
    """

    fresh: int = 0
    cached: int = 0
    output: int = 0
    reasoning: int = 0

    @property
    def total(self) -> int:
        """Return all tokens, each once."""
        return self.fresh + self.cached + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        """Return the sum."""
        return Tokens(
            self.fresh + other.fresh,
            self.cached + other.cached,
            self.output + other.output,
            self.reasoning + other.reasoning,
        )


@dataclass(frozen=True, slots=True)
class BilledCall:
    """One call of a model; `at` is in Unix seconds, `conversation` a tag, "" without one."""

    source: BillingSource
    tokens: Tokens
    person: int
    conversation: str
    at: float
    id: str = ""

    @classmethod
    def now(
        cls, source: BillingSource, tokens: Tokens, person: int, conversation: str
    ) -> "BilledCall":
        """Return a call that has just been billed, with an id of its own."""
        return cls(source, tokens, person, conversation, time(), token_hex(8))


BySource = Mapping[BillingSource, Tokens]


@dataclass(frozen=True, slots=True)
class BotUsage:
    """A month of the whole bot: sums, days (ascending), people with the most tokens first."""

    sums: BySource
    days: Mapping[int, BySource]
    people: tuple[tuple[int, int], ...]


def together(sums: BySource) -> Tokens:
    """Return the sum over all sources."""
    return sum(sums.values(), Tokens())


def day_number(at: float) -> int:
    """Return the day in UTC, counted from 1970."""
    return int(at) // 86_400


def month_of(at: float) -> str:
    """Return the month in UTC, such as `2026-11`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def expires_at(month: str) -> int:
    """Return when a month's sums expire, in Unix seconds: when the month after the next ends."""
    year, number = map(int, month.split("-"))
    months = year * 12 + number - 1 + MONTHS
    return int(datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC).timestamp())
