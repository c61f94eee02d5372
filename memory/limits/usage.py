"""Counts billed tokens by source, day, person and conversation, for all processes.

The sums hold only ids and numbers. The sums of a month expire two months after it. All keys share
one slot, so that one script counts calls in all sums, and counts each once for its id.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
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
from memory.store.scripts import Scripts

REPEATS_S = 600
"""A call that is counted again within this time counts once."""
NO_PERSON = 0
"""The person of tokens that nobody caused, or that a forgotten person did."""
_QUOTA_S = 2 * 86_400
_ANSWER = "answer"
_CLAIM_S = 60


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

    def release(self, conversation: str) -> list[BilledCall]:
        """Return the calls that are held for a conversation; the caller must count them."""
        return self._held.pop(conversation, [])

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
        days, largest = await self._client.pipeline(
            [
                ("HGETALL", self._keys.usage(month, "days")),
                ("ZREVRANGE", self._keys.usage(month, "people"), 0, people - 1, "WITHSCORES"),
            ]
        )
        by_day = dict(sorted(_by_day(days).items()))
        largest_people = tuple((int(person), int(tokens)) for person, tokens in largest)
        return BotUsage(_sum_of_days(by_day), by_day, largest_people)

    async def sums(self, at: float) -> BySource:
        """Return the month's sums of the whole bot."""
        days = await self._client.call("HGETALL", self._keys.usage(month_of(at), "days"))
        return _sum_of_days(_by_day(days))

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
        """Return the month's sums of one conversation."""
        key = self._keys.usage(month_of(at), conversation.tag)
        return _by_source(await self._client.call("HGETALL", key))

    async def forget(self, person: int, conversations: Iterable[Scope]) -> None:
        """Move a person's tokens to `NO_PERSON`, and drop the sums of their own conversations.

        The sums of the whole bot stay, and so do the tokens of today's quota. Safe to repeat.
        """
        tags = [conversation.tag for conversation in conversations]
        for month in _living_months(time()):
            names = (f"u:{person}", f"u:{NO_PERSON}", "people", *tags)
            keys = [self._keys.usage(month, name) for name in names]
            request = {"person": str(person), "nobody": NO_PERSON, "expires_at": expires_at(month)}
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
        """Return one call of the script for all calls with the same keys."""
        together = defaultdict[tuple[int, int, str], list[BilledCall]](list)
        for call in calls:
            together[day_number(call.at), call.person, call.conversation].append(call)
        return [self._counting_together(same) for same in together.values()]

    def _counting_together(self, calls: Sequence[BilledCall]) -> ScriptCall:
        first, keys = calls[0], self._keys
        month = month_of(first.at)
        names = ("days", "people", f"u:{first.person}", first.conversation or "none")
        return self._scripts["count_usage"].command(
            (
                *(keys.usage(month, name) for name in names),
                keys.spent_of(first.person, day_number(first.at)),
                *(keys.counted_call(call.id) for call in calls),
            ),
            {
                "known_ms": REPEATS_S * 1000,
                "expires_at": expires_at(month),
                "day": datetime.fromtimestamp(first.at, UTC).day,
                "person": str(first.person),
                "quota_s": _QUOTA_S,
                "calls": [_counted(call) for call in calls],
            },
        )


def _counted(call: BilledCall) -> Mapping[str, object]:
    tokens = call.tokens
    has_quota = call.person != NO_PERSON and call.source.kind == _ANSWER
    return {
        "source": str(call.source),
        "tokens": (tokens.fresh, tokens.cached, tokens.output, tokens.reasoning),
        "quota": tokens.total if has_quota else 0,
    }


def _living_months(at: float) -> list[str]:
    today = datetime.fromtimestamp(at, UTC)
    months = [today.year * 12 + today.month - 1 - back for back in range(MONTHS)]
    return [f"{number // 12}-{number % 12 + 1:02d}" for number in months]


def _by_source(fields: Mapping[bytes, bytes]) -> dict[BillingSource, Tokens]:
    return {BillingSource.of(name.decode()): _tokens(sums) for name, sums in fields.items()}


def _by_day(fields: Mapping[bytes, bytes]) -> dict[int, dict[BillingSource, Tokens]]:
    days: dict[int, dict[BillingSource, Tokens]] = {}
    for name, sums in fields.items():
        day, _, source = name.decode().partition("|")
        days.setdefault(int(day), {})[BillingSource.of(source)] = _tokens(sums)
    return days


def _sum_of_days(days: Mapping[int, BySource]) -> BySource:
    sums = defaultdict[BillingSource, Tokens](Tokens)
    for by_source in days.values():
        for source, tokens in by_source.items():
            sums[source] += tokens
    return dict(sums)


def _tokens(sums: bytes) -> Tokens:
    return Tokens(*map(int, sums.split(b",")))
