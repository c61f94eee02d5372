"""The past of a bot, stored by its own scripts: messages, their vectors, progress of learning."""

from collections.abc import Iterator, Sequence

import numpy as np

from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.fields import Watermark
from memory.scopes.log import packed, stored_fields
from memory.search.embeddings import Vectors
from memory.search.message_search import RECIPE
from memory.store.keys import Scope

DAY_S = 86_400
_BATCH = 128
_MAX_CHARS_OF_WORDS = 200
_WORDS = (  # noqa: SIM905 - a list of quoted words is harder to read
    "boat garden letter window market bread river winter sister doctor guitar school holiday "
    "dinner mountain neighbour project invoice birthday ticket kitchen flower coffee station"
).split()


class OldDays:
    """Writes exchanges with vectors of `dimensions` and `chars` characters a message.

    Most of a very long message is a link, which is quickly indexed.
    """

    def __init__(self, memory: Memory, dimensions: int = 512, chars: int = 200) -> None:
        self._memory = memory
        self._chars = chars
        self._random = np.random.default_rng(7)
        self._rows = [packed(row) for row in self._unit_rows(_BATCH, dimensions)]

    async def talk(
        self,
        conversation: Scope,
        exchanges: int,
        *,
        since: float,
        until: float,
        sender: int = 7,
        fingerprint: str = "",
    ) -> None:
        """Append exchanges, spread over time; with a `fingerprint` also their vectors."""
        memory, keys = self._memory, self._memory.keys.scope(conversation).all
        index, person = memory.keys.index_of(conversation), memory.keys.person(sender)
        await memory.client.call("ZADD", index, int(until), conversation.tag)
        await memory.client.call("HSET", person, conversation.tag, 1)
        first = int(await memory.client.call("HGET", keys[0], "next_seq") or 0) + 1
        append = memory.scripts["append"]
        commands = [
            append.command(
                keys,
                {
                    "epoch": "0",
                    "erasure": "0",
                    "ttl_s": memory.store.ttl_s,
                    "messages": exchange,
                },
            )
            for exchange in self._exchanges(exchanges, since, until, sender)
        ]
        for start in range(0, exchanges, _BATCH):
            await memory.client.pipeline(commands[start : start + _BATCH])
        if fingerprint:
            await self._embed(
                keys, range(first, first + 2 * exchanges), f"{fingerprint} | {RECIPE}"
            )

    async def learned(self, conversation: Scope, up_to: int, *names: str) -> None:
        """Write into the conversation's own scope how far behaviors have learned."""
        scope_memory = await self._memory.scopes.read(conversation)
        fields = [Watermark(name, up_to) for name in names]
        await self._memory.scopes.write(scope_memory, Write(fields=fields))

    async def _embed(self, keys: Sequence[str], seqs: range, fingerprint: str) -> None:
        learn = self._memory.scripts["learn_vectors"]
        request = {
            "stream": "messages",
            "epoch": "0",
            "erasure": "0",
            "fingerprint": fingerprint,
            "ttl_s": self._memory.store.ttl_s,
        }
        for start in range(0, len(seqs), _BATCH):
            part = seqs[start : start + _BATCH]
            before = fingerprint if start else ""
            batch = {"before": before, "after": part.start - 1, "ids": list(part)}
            rows = [row for _, row in zip(part, self._rows, strict=False)]
            assert await learn(keys, request | batch, *rows) != b"refused"

    def _exchanges(
        self, count: int, since: float, until: float, sender: int
    ) -> Iterator[list[dict[str, str]]]:
        for at, said_at in enumerate(np.linspace(since, until, count).tolist()):
            asked = Message(0, 0, "user", self._text(at), said_at, sender, "Ann", (at + 1,), 40)
            answered = Message(0, 0, "assistant", self._text(at), said_at + 5, tokens=40)
            yield [stored_fields(asked), stored_fields(answered)]

    def _text(self, at: int) -> str:
        words = self._random.choice(_WORDS, min(self._chars, _MAX_CHARS_OF_WORDS) // 6)
        letters = self._random.integers(ord("a"), ord("z") + 1, self._chars, np.uint8)
        link = "https://example.org/" + letters.tobytes().decode()
        return f"{at} {' '.join(words)} {link}"[: self._chars]

    def _unit_rows(self, count: int, dimensions: int) -> Vectors:
        rows = self._random.standard_normal((count, dimensions)).astype(np.float32)
        unit: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        return unit
