"""A model with scripted answers, and a behavior that logs every batch."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from math import inf

from pydantic import BaseModel

from memory.behaviors.learning_behavior import (
    Batch,
    Cadence,
    Learned,
    LearningBehavior,
    PartRejected,
)
from memory.learning.learner import LearningRound
from memory.memory import Memory
from memory.message import Message
from memory.queue.open_turn import Closing
from memory.scopes.entries import Fact
from memory.scopes.sources import Source
from memory.search.embeddings import EmbeddingsUnavailable, Vectors
from memory.store.keys import Scope
from memory.text.internal_model import AnswerShape, InternalModelUnavailable
from tests.memory.turns import HERE, begin, finish
from tests.memory.words_embedder import WordsEmbedder


class ScriptedModel:
    """Answers with the next of `answers`, or with `parts`; logs what it was asked.

    It writes the texts of `prose` one by one (an exception is raised), and then waits forever.
    """

    def __init__(self, *prose: str | Exception) -> None:
        self._prose = list(prose)
        self.parts: Mapping[str, object] = {}
        self.answers: list[Mapping[str, object]] = []
        self.asked: list[tuple[str, str]] = []
        self.fails = False
        self.meanwhile: Callable[[], Awaitable[object]] | None = None

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        self.asked.append((instructions, content))
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile:
            await meanwhile()
        if self.fails:
            raise InternalModelUnavailable("out of order")
        return self.answers.pop(0) if self.answers else {**dict.fromkeys(shape.parts), **self.parts}

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        assert max_tokens
        self.asked.append((instructions, content))
        if not self._prose:
            await asyncio.Event().wait()
        written = self._prose.pop(0)
        if isinstance(written, Exception):
            raise written
        return written


class RefusingEmbedder(WordsEmbedder):
    """Refuses calls with a text that contains `refused`: all for "", none for None."""

    refused: str | None = ""

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if self.refused is not None and any(self.refused in text for text in texts):
            raise EmbeddingsUnavailable("404")
        return await super().embed(texts)


class Note(BaseModel):
    text: str


class Notes(LearningBehavior):
    """Learns one fact from each batch; due after `every` exchanges or `after_s` of quiet."""

    part = Note
    task = "Note something."

    def __init__(
        self,
        name: str = "notes",
        every: int = 2,
        *,
        is_personal: bool = False,
        after_s: float = inf,
    ) -> None:
        self.name = name
        self.is_personal = is_personal
        self.cadence = Cadence(every, after_s, max_tokens=sys.maxsize)
        self.batches: list[list[int]] = []
        self.rejects = False
        self.state = ""

    def prompt_input(self, batch: Batch) -> str:
        scope_memory = batch.facts if self.is_personal else batch.here
        return f"{len(scope_memory.facts)} notes so far"

    def learn(self, batch: Batch, answer: Note) -> Learned:
        if self.rejects:
            raise PartRejected("does harm")
        seqs = [message.seq for message in batch.messages]
        self.batches.append(seqs)
        source = Source(batch.conversation.tag, seqs[0])
        state = self.state or f'{{"n":{seqs[-1]}}}'
        return Learned([Fact(0, answer.text, (source,), batch.now)], state=state)


async def talk(
    memory: Memory, *texts: str, conversation: Scope = HERE, closing: Closing | None = None
) -> None:
    """Run a turn for each text, as a worker does."""
    stored = await memory.client.call("GET", "updates") or 0
    for number, text in enumerate(texts, start=int(stored) + 1):
        await memory.client.call("SET", "updates", number)
        messages = [
            Message(0, 0, "user", text, 1_000.0 + number, 7, "Ann", (number,), 3),
            Message(0, 0, "assistant", "yes", 1_000.5 + number, tokens=1),
        ]
        await finish(memory, await begin(memory, number, conversation), messages, closing)


async def talk_and_learn(
    memory: Memory, *texts: str, conversation: Scope = HERE, closing: Closing | None = None
) -> LearningRound:
    """Run a turn for each text, and learn from them what is due."""
    await talk(memory, *texts, conversation=conversation, closing=closing)
    return await memory.learn(conversation)
