"""A day of many chats: each update is delivered until it is accepted, and workers answer it.

The protocol is the product's. Only the runner is made up; it answers with the updates' numbers.
"""

import asyncio
import itertools
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field

from bot.turn.permits import Permits
from bot.turn.worker import TurnWorker
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Committed, OpenTurn
from memory.scopes.log import Cursor
from memory.store.errors import StoreError
from memory.store.keys import Scope

_PATIENCE_S = 30


@dataclass(slots=True)
class Day:
    """When each update was accepted and first answered, how often, and which turns are closed."""

    accepted: dict[int, float] = field(default_factory=dict)
    sent: Counter[int] = field(default_factory=Counter)
    sent_at: dict[int, float] = field(default_factory=dict)
    order: list[tuple[str, int]] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)

    @property
    def lost(self) -> set[int]:
        """Updates that were accepted and not answered; final when no update waits any more."""
        return self.accepted.keys() - self.sent.keys()

    @property
    def doubled(self) -> set[int]:
        """Updates that were answered more than once."""
        return {update_id for update_id, times in self.sent.items() if times > 1}

    @property
    def out_of_order(self) -> int:
        """How often an update was answered before an earlier one of its chat."""
        by_chat: dict[str, list[int]] = {}
        for tag, update_id in self.order:
            by_chat.setdefault(tag, []).append(update_id)
        firsts = (list(dict.fromkeys(ids)) for ids in by_chat.values())
        return sum(a > b for ids in firsts for a, b in itertools.pairwise(ids))


class EchoRunner:
    """Answers a turn as the bot does: outbox, send, commit."""

    def __init__(self, memory: Memory, day: Day) -> None:
        self._memory = memory
        self._day = day

    async def run(self, turn: OpenTurn) -> Committed:
        updates = [entry.update_id for entry in turn.entries]
        if not turn.outbox:
            await self._memory.turns.write_outbox(turn, b"answer")
        for update_id in updates:
            self._day.sent[update_id] += 1
            self._day.sent_at.setdefault(update_id, time.monotonic())
            self._day.order.append((turn.lease.conversation.tag, update_id))
        text = " ".join(map(str, updates))
        now = time.time()
        messages = [
            Message(0, 0, "user", text, now, turn.entries[0].sender_id, "Ann", (1,), 3),
            Message(0, 0, "assistant", f"answered {text}", now, tokens=3),
        ]
        committed = await self._memory.turns.commit(turn, messages, Cursor())
        self._day.closed.update(updates)
        return committed


async def accept(memory: Memory, day: Day, update_id: int, conversation: Scope) -> None:
    """Deliver an update as Telegram does, again and again until it is accepted."""
    entry = Entry(update_id, conversation.chat_id, is_alone=False, body=b"text")
    async with asyncio.timeout(_PATIENCE_S):
        while update_id not in day.accepted:
            try:
                await memory.mailbox.put(conversation, entry)
                day.accepted[update_id] = time.monotonic()
            except StoreError:
                await asyncio.sleep(0.1)


async def work(memory: Memory, day: Day, stopping: asyncio.Event) -> None:
    """Answer until `stopping` is set, and sweep for conversations whose wake-up was lost."""
    permits = Permits(4, memory.mailbox.wake)
    ready_queue, run_turn = memory.ready_queue(), EchoRunner(memory, day).run
    worker = TurnWorker(ready_queue, memory.turns, memory.histories, permits, run_turn, 16)
    tasks = [asyncio.create_task(worker.run()), asyncio.create_task(_sweep(memory))]
    await stopping.wait()
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await worker.stop(1)


async def _sweep(memory: Memory) -> None:
    while True:
        with suppress(StoreError):
            await memory.sweep.wake_waiting(everything=True)
        await asyncio.sleep(1)
