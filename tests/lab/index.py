"""Measures the cost of search: time, bytes stored and bytes moved, by conversation length.

    python -m tests.lab.index [MESSAGES ...]

Made-up conversations (see `made_up`) pass through the product's own classes and a real Valkey,
storage included. The output is one JSON line for each length. Times are in milliseconds unless
their name says otherwise.
`cpu_p50` counts all threads; it depends least on `load`, the machine's load before and after.
"""

# Before numpy, which `memory` tells how many threads to use.
from memory.scopes.history import ChatHistory

# isort: split
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from bot.runtime.process import tune_interpreter
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.queue.open_turn import OpenTurn
from memory.queue.turn_store import TurnTimes
from memory.search.words import _stem
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.conversations import Labelled
from tests.lab.figures import percentiles
from tests.lab.made_up import ANN, made_up
from tests.lab.recall import OPTIONS, ReadyVectors, append_all, found_alone
from tests.valkey import ValkeyServer

AT_ONCE = replace(OPTIONS, times=TurnTimes(coalesce_ms=0))
SIZES = (1_000, 10_000, 100_000)
TURNS = 10
K = 8
CHAT = Scope.of_chat(-1_001_234_567_890)

T = TypeVar("T")
Measure = Callable[[int, str], Coroutine[Any, Any, dict[str, object]]]


class Conversation:
    """A made-up conversation in its own server, and a process that works on it."""

    def __init__(self, client: RedisClient, tokens: TokenCounter, labelled: Labelled) -> None:
        self.client = client
        self.labelled = labelled
        self.chat = CHAT
        self._tokens = tokens
        self._embedder = ReadyVectors()
        texts = [each.embedded_text for each in labelled.messages]
        texts += [each.text for each in labelled.questions]
        rows = [*labelled.rows, *labelled.question_rows]
        self._embedder.rows.update(zip(texts, rows, strict=True))
        self.memory = self.restarted()

    def restarted(self) -> Memory:
        """Return a new `Memory` with empty caches, as after a restart."""
        _stem.cache_clear()
        self.memory = Memory(self.client, 1, self._tokens, self._embedder, AT_ONCE)
        return self.memory

    async def store(self) -> None:
        """Store messages and vectors as the product does."""
        await append_all(self.memory, self.chat, self.labelled.messages)
        await self.memory.learn(self.chat)

    async def stored_bytes(self) -> int:
        """Return the bytes that all keys of the conversation take in the server."""
        keys = self.memory.keys.scope(self.chat)
        usage = await self.client.pipeline([("MEMORY USAGE", key, "SAMPLES", 0) for key in keys])
        return sum(each or 0 for each in usage)

    async def moved(self, work: Callable[[], Awaitable[T]]) -> tuple[T, int, float]:
        """Do some work; return its result, the bytes moved to and from Redis, and the seconds."""
        counted = [await self._wire(), await self._wire()]
        began = time.perf_counter()
        result = await work()
        seconds = time.perf_counter() - began
        counted.append(await self._wire())
        counting = counted[1] - counted[0]
        return result, counted[2] - counted[1] - counting, seconds

    async def turn(self) -> None:
        """Run a turn as a warm worker does: accept, lease, recall, reply, commit, learn."""
        memory, said = self.memory, self.labelled.messages[:2]
        update_id = time.monotonic_ns()
        await memory.mailbox.put(self.chat, Entry(update_id, ANN, False, said[0].text.encode()))  # noqa: FBT003 - no command
        turn = await memory.turns.acquire(self.chat, memory.histories.cursor(self.chat))
        assert isinstance(turn, OpenTurn)
        history = await ChatHistory.of_turn(
            memory.histories, turn.lease.conversation, turn.loaded, turn.facts
        )
        await history.search(self.labelled.questions[0].text, K)
        await memory.turns.write_outbox(turn, said[1].text.encode())
        done = await memory.turns.commit(turn, said, memory.histories.cursor(self.chat))
        history.committed(said, done.exchange, done.first_seq)
        await memory.learn(self.chat)

    async def forget_ann(self) -> None:
        """Erase the messages of one of two persons, with the answers to them."""
        await self.memory.jobs.start_job(Job("job", "forget", ANN, 2**62, 2.0**40, b""))
        await self.memory.jobs.run_job("job")

    async def _wire(self) -> int:
        stats = await self.client.info("stats")
        return int(stats["total_net_input_bytes"]) + int(stats["total_net_output_bytes"])


async def measure(size: int, redis: str) -> dict[str, object]:
    load = [os.getloadavg()[0]]
    labelled = made_up(size)
    client = await RedisClient.open(redis)
    conversation = Conversation(client, await TokenCounter.load(), labelled)
    _, _, storing_s = await conversation.moved(conversation.store)
    stored = await conversation.stored_bytes()
    memory = conversation.restarted()
    history, read_bytes, read_s = await conversation.moved(
        lambda: ChatHistory.read(memory.histories, CHAT)
    )
    _, _, index_s = await conversation.moved(
        lambda: found_alone(history, labelled.questions[0].text, 2 * K)
    )
    figures: dict[str, object] = {
        "messages": size,
        "warm_find": await times(lambda text: found_alone(history, text, 2 * K), labelled),
        "warm_search": await times(lambda text: history.search(text, K), labelled),
        "cold": {
            "read_s": round(read_s, 2),
            "read_bytes_a_message": round(read_bytes / size),
            "index_s": round(index_s, 2),
        },
        "redis_bytes_a_message": round(stored / size),
        "turn_bytes": await turn_bytes(conversation),
        "storing_s": round(storing_s, 1),
    }
    _, _, forget_s = await conversation.moved(conversation.forget_ann)
    left = len((await ChatHistory.read(memory.histories, CHAT)).messages)
    figures["after_forgetting_half"] = {
        "messages": left,
        "redis_bytes_a_message": round(await conversation.stored_bytes() / left),
        "forgetting_s": round(forget_s, 2),
    }
    await client.close()
    figures["load"] = [*load, os.getloadavg()[0]]
    return figures


async def times(search: Callable[[str], Awaitable[object]], labelled: Labelled) -> dict[str, float]:
    """Return how long the questions take, asked one after the other."""
    taken, worked = [], []
    for question in labelled.questions:
        began, began_work = time.perf_counter(), time.process_time()
        await search(question.text)
        taken.append(time.perf_counter() - began)
        worked.append(time.process_time() - began_work)
    return percentiles(taken) | {"cpu_p50": percentiles(worked)["p50"]}


async def turn_bytes(conversation: Conversation) -> int:
    """Return the mean bytes that a turn moves, without the first turn."""
    await conversation.turn()
    moved = [(await conversation.moved(conversation.turn))[1] for _ in range(TURNS)]
    return round(sum(moved) / TURNS)


def main(measure: Measure, default: Sequence[int]) -> None:
    """Measure each length on a Valkey of its own; the interpreter is tuned as in the bot."""
    tune_interpreter()
    for size in map(int, sys.argv[1:]) if sys.argv[1:] else default:
        with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
            figures = asyncio.run(measure(size, server.url))
        sys.stdout.write(json.dumps(figures) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(measure, SIZES)
