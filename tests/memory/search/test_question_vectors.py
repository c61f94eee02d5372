"""A question is embedded once, unless its call failed."""

import asyncio
from collections.abc import Sequence

import numpy as np

from memory.search.embeddings import EmbeddingsUnavailable, QuestionVectors, Vectors

QUESTION = "Where is my boat?"


class FailsOnce:
    """An embedder that fails the first call, once `goes_on` is set, and answers all others."""

    fingerprint = "fails once"

    def __init__(self) -> None:
        self.goes_on = asyncio.Event()
        self.calls = 0

    async def embed(self, texts: Sequence[str]) -> Vectors:
        self.calls += 1
        if self.calls == 1:
            await self.goes_on.wait()
            raise EmbeddingsUnavailable
        return np.ones((len(texts), 1), np.float32)


async def test_a_question_whose_call_failed_after_its_caller_left_is_embedded_again() -> None:
    embedder = FailsOnce()
    questions = QuestionVectors(embedder)
    caller = asyncio.create_task(questions.vector(QUESTION))
    await asyncio.sleep(0)
    caller.cancel()
    embedder.goes_on.set()
    for _ in range(5):  # the call fails, and then its callbacks run
        await asyncio.sleep(0)
    assert await questions.vector(QUESTION) is not None
    assert embedder.calls == 2
