"""What models cost: calls are counted, priced, and limited by a monthly budget of the whole bot.

Every billed call is counted in Redis exactly once, for its person and its conversation; no turn
waits for it. The call that gave the reply is counted in the round trip that stores the reply. A
writer in the background stores all other calls at once. It counts them; but an embedding, of which
a turn has several, is only noted, and counted with the next call of its conversation. A call is
lost only if the process dies before the call is written.

Servers report the tokens of a stream in its last chunk. If a server has taken a prompt but we
never got the end of its answer, whoever broke off, the call counts an estimate. If a server refused
a prompt, or hung up, the call counts nothing. Amounts of money are exact decimals.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from decimal import Decimal
from time import monotonic, time

import structlog

from bot.model.call import CallReport, payer
from config.settings import Settings
from config.values import Price
from memory.limits.quotas import Quota, Quotas
from memory.limits.usage import (
    DRAWN,
    HEARD,
    NO_PERSON,
    SPOKEN,
    BilledCall,
    BillingSource,
    BySource,
    Tokens,
    UsageStore,
)
from memory.store.errors import StoreError, StoreFull
from memory.store.keys import Scope
from memory.store.tasks import end_tasks

log = structlog.get_logger(__name__)

_MAX_BATCH = 50
_PAUSE_S = 1.0  # before a failed write is repeated
_GRACE_S = 2.0  # how long a process that ends waits for its last writes
_REPEATS_S = 300  # how long a failed write is repeated
_HELD_S = 0.5  # how long the call of a reply waits to be counted together with the reply
NOTED_S = 300.0  # how long a noted call waits to be counted together with another one
_NOTED = "embedding"


@contextmanager
def billed_to(conversation: Scope, person: int = NO_PERSON) -> Iterator[None]:
    """Bill calls to models here, and in tasks that start here, to this person and conversation."""
    token = payer.set((person, conversation.tag))
    try:
        yield
    finally:
        payer.reset(token)


class UsageRecorder:
    """Accepts calls at any time, and writes them to the store inside the `writing` block."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[BilledCall] = asyncio.Queue()
        self._store: UsageStore | None = None

    def model_called(self, report: CallReport) -> None:
        """Count a call for `billed_to`, if the server billed anything for it.

        A reply is stored right after its call, and the same write counts the call.
        """
        source = BillingSource(report.kind, report.model, report.which == "second")
        usage, paying = report.usage, payer.get()
        cached = min(usage.cached_tokens, usage.prompt_tokens)
        tokens = Tokens(
            usage.prompt_tokens - cached, cached, usage.completion_tokens, usage.reasoning_tokens
        )
        # An amount that is not of tokens is stored as `reasoning`, under a kind of its own.
        amounts = {HEARD: usage.heard_s, SPOKEN: usage.spoken_chars, DRAWN: usage.drawn_images}
        for kind, amount in amounts.items():
            if amount:
                unit, billed = replace(source, kind=kind), Tokens(reasoning=amount)
                self._waiting.put_nowait(BilledCall(unit, billed, *paying))
        if not tokens.total:
            return
        call = BilledCall(source, tokens, *paying)
        if report.is_reply and self._store is not None:
            self._store.hold(call)
            asyncio.get_running_loop().call_later(_HELD_S, self._release, call)
        else:
            self._waiting.put_nowait(call)

    @asynccontextmanager
    async def writing(self, store: UsageStore) -> AsyncIterator[None]:
        """Write calls to `store` while the block lasts; at the end wait up to 2 s for the rest."""
        self._store = store
        writer = asyncio.create_task(self._write(store))
        try:
            yield
        finally:
            try:
                async with asyncio.timeout(_GRACE_S):
                    self._release()
                    await self._waiting.join()
            except TimeoutError:
                log.warning("calls not counted", calls=self._waiting.qsize())
            await end_tasks([writer])

    def _release(self, held: BilledCall | None = None) -> None:
        """Write the calls held for this one's conversation, or all: no reply came to count them."""
        if self._store is not None and (held is None or self._store.holds(held)):
            conversations = [held.conversation] if held else []
            for call in self._store.release(*conversations):
                self._waiting.put_nowait(call)

    async def _write(self, store: UsageStore) -> None:
        """Write calls, and repeat failed writes: the store recognizes a repeated call."""
        while True:
            calls = [await self._waiting.get()]
            while len(calls) < _MAX_BATCH and not self._waiting.empty():
                calls.append(self._waiting.get_nowait())
            noted = [call for call in calls if call.source.kind == _NOTED and not call.is_noted]
            counted = [call for call in calls if call not in noted]
            counted += store.release(*{call.conversation for call in counted}) if counted else []
            until = monotonic() + _REPEATS_S
            while True:
                try:
                    await store.count(counted, noted)
                except StoreError as error:
                    if noted and isinstance(error, StoreFull):
                        counted, noted = [*counted, *noted], []  # a count needs no more memory
                        continue
                    if monotonic() > until:
                        reason = type(error).__name__
                        log.warning("calls not counted", calls=len(calls), reason=reason)
                        break
                    await asyncio.sleep(_PAUSE_S)
                else:
                    for call in noted:
                        asyncio.get_running_loop().call_later(NOTED_S, self._release, call)
                    break
            for _ in calls:
                self._waiting.task_done()


_PER_TOKENS = 1_000_000
_UNITS = {
    "min": (HEARD, 60),
    "kchar": (SPOKEN, 1_000),
    "Mchar": (SPOKEN, 1_000_000),
    "image": (DRAWN, 1),
}
"""What is counted for a unit, and how much of it the price is for."""


class Prices:
    """The price of each model; what has no price costs nothing."""

    def __init__(self, prices: Iterable[Price]) -> None:
        self._prices = {price.model: price for price in prices}

    def __bool__(self) -> bool:
        """Return whether there is any price."""
        return bool(self._prices)

    def cost(self, sums: BySource) -> Decimal:
        """Return the cost of all sources together."""
        cost = Decimal(0)
        for source, tokens in sums.items():
            price = self._price_of(source)
            if price is None:
                continue
            if price.unit:
                cost += tokens.reasoning * price.input / _UNITS[price.unit][1]  # see `model_called`
            else:
                amount = tokens.fresh * price.input + tokens.cached * price.cached
                cost += (amount + tokens.output * price.output) / _PER_TOKENS
        return cost

    def missing(self, sources: Iterable[BillingSource]) -> tuple[str, ...]:
        """Return the sorted names of models that were used and have no price for any such use."""
        sources = list(sources)
        priced = {each.model for each in sources if self._price_of(each)}
        return tuple(sorted({each.model for each in sources} - priced))

    def _price_of(self, source: BillingSource) -> Price | None:
        """Return the price of such a use of a model; None if there is none."""
        price = self._prices.get(source.model)
        counted, _ = _UNITS.get(price.unit if price else "", ("", 0))
        is_use = source.kind == counted if counted else source.kind not in (HEARD, SPOKEN, DRAWN)
        return price if is_use else None


@dataclass(frozen=True, slots=True)
class Budget:
    """What the bot may cost in a calendar month (UTC), and what one person may have."""

    settings: Settings
    usage: UsageStore
    quotas: Quotas

    @property
    def prices(self) -> Prices:
        """The prices as they are set now."""
        return Prices(self.settings.prices)

    async def spent(self) -> Decimal:
        """Return the cost of this month so far; raise `StoreError`."""
        return self.prices.cost(await self.usage.sums(time()))

    async def is_used_up(self) -> bool:
        """Return whether this month's budget is spent; raise `StoreError`."""
        limit = self.settings.budget_per_month  # 0 means no limit
        return bool(limit) and await self.spent() >= limit

    @property
    def quota(self) -> Quota:
        """The quota of a person, as it is set now."""
        return Quota(self.settings.user_turns_per_minute, self.settings.user_tokens_per_day)

    async def allows(self, *, as_turn: bool = False) -> bool:
        """Return whether models may be asked for whoever is billed here; raise `StoreError`.

        Nothing is counted, and operators are exempt. Turns a minute limit what is asked `as_turn`.
        """
        person, _ = payer.get()
        if person in self.settings.admin_user_ids:
            return True
        quota = self.quota if as_turn else replace(self.quota, turns=0)
        return not (await self.is_used_up() or await self.quotas.is_used_up(person, quota))
