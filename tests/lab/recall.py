"""Measures how well the product finds messages in labelled conversations.

    python -m tests.lab.recall DIR [DIR ...]

Each DIR has `conversations.json` and `embeddings.npz` (see `conversations`), with vectors of the
text that the product embeds. The product's own classes store and search everything on a real
Valkey. The output is one JSON line for each folder.
recall@k is the mean over all questions of the share of evidence messages among the first k hits.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from pathlib import Path

import numpy as np

from memory.memory import Memory, MemoryOptions
from memory.message import Message
from memory.queue.turn_store import TurnTimes
from memory.scopes.history import ChatHistory
from memory.scopes.log import packed, stored_fields
from memory.search.embeddings import EmbeddingsUnavailable, Vectors
from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord
from memory.search.weights import Weights
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.conversations import Labelled, read_folder
from tests.valkey import ValkeyServer

KS = (5, 10, 25, 50)
BATCH = 500
TTL_S = 86_400
OPTIONS = MemoryOptions(ttl_s=TTL_S, tail=80, cache_bytes=2**30, times=TurnTimes())


class ReadyVectors:
    """The embedder of a folder, which has the rows ready by text."""

    fingerprint = "ready-made"

    def __init__(self) -> None:
        self.rows: dict[str, Vectors] = {}

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return the ready rows of these texts; raise `EmbeddingsUnavailable` for others."""
        try:
            return np.stack([self.rows[text] for text in texts])
        except KeyError as error:
            raise EmbeddingsUnavailable("not in this folder") from error


async def stored(memory: Memory, embedder: ReadyVectors, labelled: Labelled) -> ChatHistory:
    """Store a conversation with its vectors, and read it as a cold process does."""
    conversation = Scope.of_keys({"benchmark": labelled.name})
    await append_all(memory, conversation, labelled.messages)
    for message, row in zip(labelled.messages, labelled.rows, strict=True):
        embedder.rows[message.embedded_text] = row
    for question, row in zip(labelled.questions, labelled.question_rows, strict=True):
        embedder.rows[question.text] = row
    await memory.learn(conversation)
    return await ChatHistory.read(memory.histories, conversation)


async def append_all(memory: Memory, conversation: Scope, messages: Sequence[Message]) -> None:
    """Store messages without their vectors, exchange by exchange, as turns do."""
    request = {"epoch": "0", "erasure": "0", "ttl_s": TTL_S}
    said = ([stored_fields(each) for each in exchange] for exchange in exchanges(messages))
    commands = [
        memory.store.call("append", conversation, {**request, "messages": each}) for each in said
    ]
    for start in range(0, len(commands), BATCH):
        await memory.client.pipeline(commands[start : start + BATCH])


def exchanges(messages: Sequence[Message]) -> list[list[Message]]:
    """Group each message of a person with the assistant's answers that follow it."""
    grouped: list[list[Message]] = []
    for message in messages:
        if message.role == "user" or not grouped:
            grouped.append([])
        grouped[-1].append(message)
    return grouped


def one_retriever(labelled: Labelled, *, dense: bool) -> HybridIndex:
    """Return an index with only one retriever, the dense or the lexical one."""
    weights = Weights(lexical=0, floor=-inf, min_lexical=-inf) if dense else Weights()
    index = HybridIndex(weights=weights)
    records = []
    for each in labelled.messages:
        day = datetime.fromtimestamp(each.sent_at, UTC).date()
        is_answer = each.role == "assistant"
        records.append(IndexRecord(each.embedded_text, 0, is_answer, said_on=day))
    index.extend(records)
    if dense:
        index.put_stored(range(len(index)), [packed(row) for row in labelled.rows])
    return index


async def measure(folder: Path, redis: str) -> dict[str, object]:
    client = await RedisClient.open(redis)
    tokens = await TokenCounter.load()
    recalls: dict[str, list[float]] = defaultdict(list)
    categories: dict[str, list[float]] = defaultdict(list)
    times: list[float] = []
    for labelled in read_folder(folder):
        embedder = ReadyVectors()
        memory = Memory(client, 1, tokens, embedder, OPTIONS)
        history = await stored(memory, embedder, labelled)
        retrievers = {
            "dense": one_retriever(labelled, dense=True),
            "lexical": one_retriever(labelled, dense=False),
        }
        for number, question in enumerate(labelled.questions):
            began = time.perf_counter()
            rows = await found_alone(history, question.text, max(KS))
            times.append((time.perf_counter() - began) * 1000)
            for k in KS:
                recalls[f"recall@{k}"].append(labelled.share(question, rows[:k]))
            categories[question.category].append(labelled.share(question, rows[:10]))
            for retriever, index in retrievers.items():
                row = labelled.question_rows[number] if retriever == "dense" else None
                hits = index.search(question.text, row, 10)
                recalls[f"{retriever}@10"].append(
                    labelled.share(question, (hit.row for hit in hits))
                )
    await client.close()
    figures: dict[str, object] = {"dir": str(folder), "questions": len(times)}
    figures |= {f"recall@{k}": percent(recalls[f"recall@{k}"]) for k in KS}
    figures["by_category"] = {name: percent(shares) for name, shares in sorted(categories.items())}
    figures |= {f"{each}@10": percent(recalls[f"{each}@10"]) for each in ("dense", "lexical")}
    for p in (50, 99):
        figures[f"ms_per_query_p{p}"] = round(float(np.percentile(times, p)), 3)
    return figures


async def found_alone(history: ChatHistory, text: str, k: int) -> list[int]:
    """Return the rows of the messages about a text, without what a turn adds to them."""
    await history.fill()
    return [each.seq - 1 for each in await history.search_in_memory(text, k, is_alone=True)]


def percent(shares: Sequence[float]) -> float:
    return round(100 * float(np.mean(shares)), 2)


def main(folders: Sequence[str]) -> None:
    """Measure each folder on a new Valkey."""
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
            figures = asyncio.run(measure(Path(folder), server.url))
        sys.stdout.write(json.dumps(figures) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
