"""The turn worker: hears bells, holds leases, has turns run; a bounded number at once.

One conversation is worked on by one worker at a time; conversations do not wait for each other.
What a turn does is `runner`'s business.
"""

import asyncio
from typing import NoReturn, Protocol

import structlog

from bot.turn.deliver import Parked
from memory.keys import Conversation
from memory.memory import Memory
from memory.protocol.doorbell import Bell, Doorbell
from memory.protocol.turns import Committed, LeaseLost, Nothing, OpenTurn, Wait
from memory.redis_client import StoreError

log = structlog.get_logger(__name__)

_BLOCK_MS = 1_000
_STORE_PAUSE_S = 0.5

Next = OpenTurn | Wait | Nothing


class Runner(Protocol):
    """Answers one turn."""

    async def run(self, turn: OpenTurn) -> Committed:
        """Answer, deliver and commit; raise `LeaseLost`, `Parked` or `StoreError`."""
        ...


class TurnWorker:
    """Serves bells until it is stopped."""

    def __init__(self, memory: Memory, runner: Runner, *, most: int, lease_s: float) -> None:
        self._memory = memory
        self._runner = runner
        self._most = most
        self._lease_s = lease_s
        self._doorbell: Doorbell = memory.doorbell()
        self._serving: set[asyncio.Task[None]] = set()
        self._last_reclaim = 0.0
        self._is_stopping = False

    async def run(self) -> None:
        """Hear bells, never more than there are free places, until cancelled."""
        while True:
            free = self._most - len(self._serving)
            if free <= 0:
                await asyncio.wait(self._serving, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                bells = await self._reclaim(free) or await self._doorbell.read(free, _BLOCK_MS)
            except StoreError as error:
                log.warning("store unavailable", reason=type(error).__name__)
                await asyncio.sleep(_STORE_PAUSE_S)
                continue
            for bell in bells:
                task = asyncio.create_task(self._serve(bell), name=f"turn {bell.tag}")
                self._serving.add(task)
                task.add_done_callback(self._serving.discard)

    async def stop(self, grace_s: float) -> None:
        """Let running turns finish within `grace_s`; hand over the rest. Cancel `run` before."""
        self._is_stopping = True
        if self._serving:
            await asyncio.wait(self._serving, timeout=grace_s)
        serving = list(self._serving)
        for task in serving:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)

    async def _reclaim(self, most: int) -> list[Bell]:
        now = asyncio.get_running_loop().time()
        if now - self._last_reclaim < self._lease_s / 3:
            return []
        self._last_reclaim = now
        return await self._doorbell.reclaim(most, int(self._lease_s * 1_300))

    async def _serve(self, bell: Bell) -> None:
        """Serve one bell to its end; whatever goes wrong, the mail stays and so does the bell."""
        conversation = Conversation(bell.tag)
        with structlog.contextvars.bound_contextvars(conversation=bell.tag):
            try:
                why = await self._serve_conversation(conversation, bell)
                if why != "held" or not bell.is_reclaimed:
                    await self._doorbell.acknowledge(bell)
            except asyncio.CancelledError:
                await self._doorbell.acknowledge(bell)
                raise
            except StoreError as error:
                log.warning("turn interrupted", reason=type(error).__name__)
            except Exception:
                log.exception("turn failed")

    async def _serve_conversation(self, conversation: Conversation, bell: Bell) -> str:
        """Run turns while there are any; say why there are no more."""
        while True:
            result = await self._acquire(conversation)
            try:
                while not isinstance(result, Nothing):
                    result = await self._advance(conversation, bell, result)
            except LeaseLost:
                self._memory.cache.drop(conversation)
                log.info("lease lost")
                continue
            except Parked as parked:
                log.warning("turn parked", pause_s=parked.pause_s)
                return "parked"
            if result.why != "lost":
                return result.why

    async def _acquire(self, conversation: Conversation, token: str = "") -> Next:
        known = self._memory.cache.known(conversation)
        return await self._memory.turns.acquire(conversation, known, token)

    async def _advance(
        self, conversation: Conversation, bell: Bell, result: OpenTurn | Wait
    ) -> Next:
        """Wait for a fresh message to settle, or run the turn; a cancelled holder hands over."""
        token = result.token if isinstance(result, Wait) else result.lease.token
        try:
            if self._is_stopping:
                _give_up()
            if isinstance(result, Wait):
                await asyncio.sleep(min(result.wait_ms / 1000, self._lease_s / 2))
                return await self._acquire(conversation, token)
            with structlog.contextvars.bound_contextvars(turn=result.id):
                return (await self._keep_alive(result, bell)).then
        except asyncio.CancelledError:
            await self._memory.turns.hand_over(conversation, token)
            await self._memory.mailbox.ring(conversation)
            raise

    async def _keep_alive(self, turn: OpenTurn, bell: Bell) -> Committed:
        """Run a turn while its lease is renewed; end it at once when the lease is lost."""
        running = asyncio.create_task(self._runner.run(turn))
        renewing = asyncio.create_task(self._renew(turn, bell))
        try:
            await asyncio.wait({running, renewing}, return_when=asyncio.FIRST_COMPLETED)
            if renewing.done() and not running.done():
                await renewing
            return await running
        finally:
            for task in (running, renewing):
                task.cancel()
            await asyncio.gather(running, renewing, return_exceptions=True)

    async def _renew(self, turn: OpenTurn, bell: Bell) -> None:
        """Extend lease and bell every third of a lease; raise `LeaseLost` once either is gone."""
        loop = asyncio.get_running_loop()
        renewed = loop.time()
        while True:
            await asyncio.sleep(self._lease_s / 3)
            try:
                await self._memory.turns.renew(turn.lease)
                await self._doorbell.renew(bell)
                renewed = loop.time()
            except StoreError:
                if loop.time() - renewed > self._lease_s:
                    raise LeaseLost(turn.lease.conversation.tag) from None


def _give_up() -> NoReturn:
    raise asyncio.CancelledError
