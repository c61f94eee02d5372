"""Counts billed tokens by source, day, person and conversation, for all processes.

The sums hold only ids and numbers. A private chat has no sums of its own: they are those of its
person. The sums of a month expire two months after it. All keys share one slot, so that
one script counts calls in all sums, and counts each once for its id.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from operator import add
from secrets import token_hex
from time import time

import orjson

from memory.store.commands import ScriptCall
from memory.store.keys import Scope
from memory.store.store import Store

MONTHS = 3  # how many months' sums exist at a time
_DAY_S = 86_400

HEARD, SPOKEN, DRAWN = "heard_s", "spoken_chars", "drawn_images"
"""Kinds of sources with another unit: seconds of sound, characters, and images."""


@dataclass(frozen=True, slots=True)
class BillingSource:
    """What was billed."""

    kind: str  # of the call, such as `answer`; or `HEARD`, `SPOKEN`, `DRAWN`: not billed by tokens
    model: str
    is_second: bool = False  # it was the second model

    @classmethod
    def of(cls, name: str) -> "BillingSource":
        """Read the name of a field."""
        kind, number, model = name.split("|", 2)
        return cls(kind, model, number == "2")

    def __str__(self) -> str:
        return f"{self.kind}|{2 if self.is_second else 1}|{self.model}"


@dataclass(frozen=True, slots=True)
class Tokens:
    """Billed tokens.

    Of a source that is not billed by tokens, `reasoning` is the amount in its unit. So `total`
    leaves it out, and processes of older versions can read it.
    """

    fresh: int = 0  # input without `cached`
    cached: int = 0
    output: int = 0
    reasoning: int = 0  # a part of `output`

    @property
    def total(self) -> int:
        """Return all tokens, each once."""
        return self.fresh + self.cached + self.output

    def __add__(self, other: "Tokens") -> "Tokens":
        return Tokens(*map(add, astuple(self), astuple(other)))


@dataclass(frozen=True, slots=True)
class BilledCall:
    """One call of a model."""

    source: BillingSource
    tokens: Tokens
    person: int
    conversation: str  # its tag, "" without one
    at: float = field(default_factory=time)  # Unix seconds
    id: str = field(default_factory=partial(token_hex, 8))
    is_noted: bool = False  # it is stored, so that no kill loses it, but is in no sum yet

    @property
    def for_quota(self) -> int:
        """How many tokens it takes from the quota of its person."""
        of_kind = {"answer": self.tokens.total, HEARD: _TOKENS_PER_S * self.tokens.reasoning}
        return of_kind.get(self.source.kind, 0) if self.person != NO_PERSON else 0

    @classmethod
    def of_note(cls, note: bytes) -> "BilledCall":
        """Read a noted call; `orjson` writes it."""
        fields = orjson.loads(note)
        source, tokens = BillingSource(**fields["source"]), Tokens(**fields["tokens"])
        return cls(**{**fields, "source": source, "tokens": tokens})


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


def summed(several: Iterable[BySource]) -> BySource:
    """Return the sum of each source over all of these."""
    sums: dict[BillingSource, Tokens] = {}
    for each in several:
        for source, tokens in each.items():
            sums[source] = sums.get(source, Tokens()) + tokens
    return sums


def next_day() -> int:
    """Return when the next day begins in UTC."""
    return (int(time()) // _DAY_S + 1) * _DAY_S


def month_of(at: float) -> str:
    """Return the month in UTC, such as `2026-11`."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m")


def expires_at(month: str) -> int:
    """Return when a month's sums expire, in Unix seconds: when the month after the next ends."""
    year, number = map(int, month.split("-"))
    months = year * 12 + number - 1 + MONTHS
    return int(datetime(months // 12, months % 12 + 1, 1, tzinfo=UTC).timestamp())


NO_PERSON = 0  # the person of tokens that nobody caused, or that a forgotten person did
_TOKENS_PER_S = 10  # of sound, as models that hear count it; for silence no answer counts
_COUNTED = b"counted"


class UsageStore:
    """Counts calls, and reads sums of the month in which a time lies."""

    def __init__(self, store: Store) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._held: dict[str, list[BilledCall]] = {}

    def hold(self, call: BilledCall) -> None:
        """Keep a call for the next write about its conversation, or until it is released."""
        self._held.setdefault(call.conversation, []).append(call)

    def holds(self, call: BilledCall) -> bool:
        """Return whether this process holds a call."""
        return any(call.id == held.id for held in self._held.get(call.conversation, ()))

    def release(self, *conversations: str) -> list[BilledCall]:
        """Return what is held for these conversations, else all; the caller must count it."""
        names = conversations or tuple(self._held)
        return [call for name in names for call in self._held.pop(name, [])]

    async def count(self, calls: Iterable[BilledCall], noted: Iterable[BilledCall] = ()) -> None:
        """Count calls, in one round trip; raise `StoreError` when some may not be counted.

        `noted` are only stored, in one command, and held: they are counted with what comes next of
        their conversation.
        """
        noted = [replace(call, is_noted=True) for call in noted]
        notes = [each for call in noted for each in (call.id, orjson.dumps(call))]
        note = [("HSET", self._keys.noted_calls, *notes)] if notes else []
        await self._client.pipeline([*self.counting(calls), *note])
        for call in noted:
            self.hold(call)

    async def count_noted(self, older_s: float = 0) -> None:
        """Count noted calls that are at least so many seconds old: their process may be dead."""
        notes = await self._client.call("HVALS", self._keys.noted_calls)
        noted = map(BilledCall.of_note, notes)
        await self.count(call for call in noted if time() - call.at >= older_s)

    async def of_bot(self, at: float, people: int) -> BotUsage:
        """Return the month of the whole bot, with the `people` who used the most tokens."""
        await self.count_noted()
        month = month_of(at)
        stored, largest = await self._client.pipeline(
            [
                ("HGETALL", self._keys.usage(month, "days")),
                ("ZREVRANGE", self._keys.usage(month, "people"), 0, people - 1, "WITHSCORES"),
            ]
        )
        days = _by_day(stored)
        return BotUsage(
            summed(days.values()),
            dict(sorted(days.items())),
            tuple((int(person), int(tokens)) for person, tokens in largest),
        )

    async def sums(self, at: float) -> BySource:
        """Return the month's sums of the whole bot."""
        month = month_of(at)
        stored, notes = await self._client.pipeline(
            [("HGETALL", self._keys.usage(month, "days")), ("HVALS", self._keys.noted_calls)]
        )
        noted = (call for call in map(BilledCall.of_note, notes) if month_of(call.at) == month)
        return summed([*_by_day(stored).values(), *({call.source: call.tokens} for call in noted)])

    async def of_person(self, person: int, at: float) -> Mapping[int, BySource]:
        """Return the month of one person by its days."""
        await self.count_noted()
        key = self._keys.usage(month_of(at), f"u:{person}")
        return _by_day(await self._client.call("HGETALL", key))

    async def totals(self, people: Sequence[int], at: float) -> list[int]:
        """Return the month's tokens of each of these people, in their order."""
        if not people:
            return []
        await self.count_noted()
        key = self._keys.usage(month_of(at), "people")
        return [int(tokens or 0) for tokens in await self._client.call("ZMSCORE", key, *people)]

    async def of_conversation(self, conversation: Scope, at: float) -> BySource:
        """Return the month's sums of one conversation; of a private one, those of its person."""
        if conversation.is_private:
            return summed((await self.of_person(conversation.chat_id, at)).values())
        await self.count_noted()
        key = self._keys.usage(month_of(at), conversation.tag)
        fields = await self._client.call("HGETALL", key)
        sums = ((name.decode(), sum_) for name, sum_ in fields.items() if name != _COUNTED)
        return {BillingSource.of(name): _tokens(sum_) for name, sum_ in sums}

    async def forget(self, person: int, conversations: Iterable[Scope]) -> None:
        """Move a person's tokens to `NO_PERSON`, and drop the sums of their own conversations.

        The sums of the whole bot stay, and so do the tokens of today's quota. Safe to repeat.
        """
        await self.count_noted()
        tags = [conversation.tag for conversation in conversations]
        today = datetime.fromtimestamp(time(), UTC)
        for back in range(MONTHS):
            year, number = divmod(today.year * 12 + today.month - 1 - back, 12)
            names = ("people", f"u:{person}", *tags)
            keys = [self._keys.usage(f"{year}-{number + 1:02d}", name) for name in names]
            request = {"person": str(person), "nobody": NO_PERSON}
            await self._scripts["forget_usage"](keys, request)

    def counting(self, calls: Iterable[BilledCall]) -> list[ScriptCall]:
        """Return what counts calls, by person, conversation and day."""
        groups: dict[tuple[int, str, int], list[BilledCall]] = {}
        for call in calls:
            key = (call.person, call.conversation, int(call.at) // _DAY_S)
            groups.setdefault(key, []).append(call)

        scripts = []
        for (person, conversation, day), group in groups.items():
            month = month_of(group[0].at)
            is_private = person > NO_PERSON and Scope(conversation).chat_id == person
            own = f"u:{person}"
            names = [own if is_private else conversation or "none", "days", "people"]
            keys = [*(self._keys.usage(month, name) for name in names), self._keys.noted_calls]
            if person != NO_PERSON:
                keys.append(self._keys.usage("spent", day, person))
                if not is_private:
                    keys.append(self._keys.usage(month, own))

            sources = list(dict.fromkeys(str(call.source) for call in group))
            listed = [
                (call.id, sources.index(str(call.source)) + 1, astuple(call.tokens), call.for_quota)
                for call in group
            ]
            request = {
                "calls": listed,
                "sources": sources,
                "person": str(person),
                "day": datetime.fromtimestamp(group[0].at, UTC).day,
                "is_private": is_private,
                "expires_at": expires_at(month),
                "noted": [call.id for call in group if call.is_noted],
            }
            scripts.append(self._scripts["count_usage"].command(keys, request))
        return scripts


def _by_day(fields: Mapping[bytes, bytes]) -> dict[int, dict[BillingSource, Tokens]]:
    days: dict[int, dict[BillingSource, Tokens]] = {}
    for name, sums in fields.items():
        if name == _COUNTED:
            continue
        day, _, source = name.decode().partition("|")
        days.setdefault(int(day), {})[BillingSource.of(source)] = _tokens(sums)
    return days


def _tokens(sums: bytes) -> Tokens:
    return Tokens(*map(int, sums.split(b",")))
