"""Counts billed tokens by source, day, person and conversation, for all processes.

The sums hold only ids and numbers. A private chat has no sums of its own: they are those of its
person. The sums of a month expire two months after it. All keys share one slot, so that
one script counts calls in all sums, and counts each once for its id.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple
from datetime import UTC, datetime
from time import time

from memory.limits.billed import (
    MONTHS,
    BilledCall,
    BillingSource,
    BotUsage,
    BySource,
    Tokens,
    day_number,
    expires_at,
    month_of,
)
from memory.store.client import RedisClient
from memory.store.commands import Reply, ScriptCall
from memory.store.keys import Keys, Scope
from memory.store.store import Scripts

_KNOWN_CALLS = 32
"""A repeated call counts once, unless this many others of its conversation were counted since."""
NO_PERSON = 0
"""The person of tokens that nobody caused, or that a forgotten person did."""
_QUOTA_S = 2 * 86_400
_ANSWER = "answer"
_CLAIM_S = 60
_COUNTED = b"counted"


class UsageStore:
    """Counts calls, and reads sums of the month in which a time lies."""

    def __init__(self, client: RedisClient, keys: Keys, scripts: Scripts) -> None:
        self._client = client
        self._keys = keys
        self._scripts = scripts
        self._held: dict[str, list[BilledCall]] = {}

    def hold(self, call: BilledCall) -> None:
        """Keep a call for the next write about its conversation, or until it is released."""
        self._held.setdefault(call.conversation, []).append(call)

    def release(self, *conversations: str) -> list[BilledCall]:
        """Return the calls that are held for these conversations, else for all.

        The caller must count them.
        """
        names = conversations or tuple(self._held)
        return [call for name in names for call in self._held.pop(name, [])]

    async def count_along(self, conversation: Scope, write: ScriptCall) -> Reply:
        """Send a write, and count the held calls in the same round trip; return its reply.

        If that fails, the calls are held again. On a Cluster the calls stay held, because there it
        would be a second round trip.
        """
        calls = [] if self._client.is_cluster else self.release(conversation.tag)
        try:
            *_, reply = await self._client.pipeline([*self._counting(calls), write])
        except BaseException:
            for call in calls:
                self.hold(call)
            raise
        return reply

    async def count(self, calls: Iterable[BilledCall]) -> None:
        """Count calls, in one round trip; raise `StoreError` when some may not be counted."""
        await self._client.pipeline(self._counting(calls))

    async def of_bot(self, at: float, people: int) -> BotUsage:
        """Return the month of the whole bot, with the `people` who used the most tokens."""
        month = month_of(at)
        stored, largest = await self._client.pipeline(
            [
                ("HGETALL", self._keys.usage(month, "days")),
                ("ZREVRANGE", self._keys.usage(month, "people"), 0, people - 1, "WITHSCORES"),
            ]
        )
        days = _by_day(stored)
        return BotUsage(
            _over_days(days),
            dict(sorted(days.items())),
            tuple((int(person), int(tokens)) for person, tokens in largest),
        )

    async def sums(self, at: float) -> BySource:
        """Return the month's sums of the whole bot."""
        stored = await self._client.call("HGETALL", self._keys.usage(month_of(at), "days"))
        return _over_days(_by_day(stored))

    async def of_person(self, person: int, at: float) -> Mapping[int, BySource]:
        """Return the month of one person by its days."""
        key = self._keys.usage(month_of(at), f"u:{person}")
        return _by_day(await self._client.call("HGETALL", key))

    async def totals(self, people: Sequence[int], at: float) -> list[int]:
        """Return the month's tokens of each of these people, in their order."""
        if not people:
            return []
        key = self._keys.usage(month_of(at), "people")
        return [int(tokens or 0) for tokens in await self._client.call("ZMSCORE", key, *people)]

    async def of_conversation(self, conversation: Scope, at: float) -> BySource:
        """Return the month's sums of one conversation; of a private one, those of its person."""
        if conversation.is_private:
            return _over_days(await self.of_person(conversation.chat_id, at))
        key = self._keys.usage(month_of(at), conversation.tag)
        fields = await self._client.call("HGETALL", key)
        sums = ((name.decode(), sum_) for name, sum_ in fields.items() if name != _COUNTED)
        return {BillingSource.of(name): _tokens(sum_) for name, sum_ in sums}

    async def forget(self, person: int, conversations: Iterable[Scope]) -> None:
        """Move a person's tokens to `NO_PERSON`, and drop the sums of their own conversations.

        The sums of the whole bot stay, and so do the tokens of today's quota. Safe to repeat.
        """
        tags = [conversation.tag for conversation in conversations]
        for month in _living_months(time()):
            names = ("people", f"u:{person}", *tags)
            keys = [self._keys.usage(month, name) for name in names]
            request = {"person": str(person), "nobody": NO_PERSON}
            await self._scripts["forget_usage"](keys, request)

    async def claim_notice(self, at: float, percent: int) -> bool:
        """Return whether this process must tell admins that so much of the budget is spent.

        The claim holds for a minute, so that one process tells them. `mark_reported` makes it last.
        """
        key = self._notice(at, percent)
        return bool(await self._client.call("SET", key, "claimed", "NX", "EX", _CLAIM_S))

    async def mark_reported(self, at: float, percent: int) -> None:
        """Note that admins were told, for the rest of the month."""
        key = self._notice(at, percent)
        await self._client.pipeline(
            [("SET", key, "reported"), ("EXPIREAT", key, expires_at(month_of(at)))]
        )

    def _notice(self, at: float, percent: int) -> str:
        return self._keys.usage(month_of(at), f"reported:{percent}")

    def _counting(self, calls: Iterable[BilledCall]) -> list[ScriptCall]:
        """Return one script for all calls of a person in a conversation on one day."""
        groups: dict[tuple[int, str, int], list[BilledCall]] = {}
        for call in calls:
            key = (call.person, call.conversation, day_number(call.at))
            groups.setdefault(key, []).append(call)
        return [self._counting_group(*key, group) for key, group in groups.items()]

    def _counting_group(
        self, person: int, conversation: str, day: int, calls: Sequence[BilledCall]
    ) -> ScriptCall:
        month = month_of(calls[0].at)
        is_private = person > NO_PERSON and Scope(conversation).chat_id == person
        own = f"u:{person}"
        names = [own if is_private else conversation or "none", "days", "people"]
        keys = [self._keys.usage(month, name) for name in names]
        if person != NO_PERSON:
            keys.append(self._keys.spent_of(person, day))
            if not is_private:
                keys.append(self._keys.usage(month, own))
        sources = list(dict.fromkeys(str(call.source) for call in calls))
        listed = [
            (
                call.id,
                sources.index(str(call.source)) + 1,
                astuple(call.tokens),
                person != NO_PERSON and call.source.kind == _ANSWER,
            )
            for call in calls
        ]
        request = {
            "calls": listed,
            "sources": sources,
            "person": str(person),
            "day": datetime.fromtimestamp(calls[0].at, UTC).day,
            "is_private": is_private,
            "expires_at": expires_at(month),
            "known": _KNOWN_CALLS,
            "quota_s": _QUOTA_S,
        }
        return self._scripts["count_usage"].command(keys, request)


def _living_months(at: float) -> list[str]:
    today = datetime.fromtimestamp(at, UTC)
    months = [today.year * 12 + today.month - 1 - back for back in range(MONTHS)]
    return [f"{number // 12}-{number % 12 + 1:02d}" for number in months]


def _over_days(days: Mapping[int, BySource]) -> BySource:
    sums: dict[BillingSource, Tokens] = {}
    for of_day in days.values():
        for source, tokens in of_day.items():
            sums[source] = sums.get(source, Tokens()) + tokens
    return sums


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
