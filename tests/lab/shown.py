"""Ranks and packs labelled conversations in the process, under any constants.

It uses the product's index and packer without the store, because the store does not change a
ranking. Indexes and lines are kept, so that the next constants cost little.
"""

import asyncio
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from datetime import UTC

import numpy as np
import numpy.typing as npt

from bot.prompt.recalled import PACKING, Packing, RecalledLine, RecallPacker
from memory.behaviors.context import AgentContext
from memory.message import Message
from memory.scopes.log import packed
from memory.search.arrays import unpacked
from memory.search.hybrid import HybridIndex
from memory.search.message_search import SESSION_PAUSE_S, SearchResult, record_of
from memory.search.weights import DEFAULTS, Weights
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.conversations import Labelled
from tests.lab.recall import exchanges
from tests.settings import Settings

RECALL_K = Settings(_env_file=None).recall_k
DAY_S = 86_400

Shares = npt.NDArray[np.float64]

_READ_WHEN_INDEXING = (
    "saturation",
    "paragraph_words",
    "assistant_words",
    "snowball",
    "centring",
    "assistant_penalty",
    "question_penalty",
)


def index_of(labelled: Labelled, weights: Weights) -> HybridIndex:
    """Index a conversation as a cold process does, with vectors rounded as the store does."""
    index, session = HybridIndex(weights=weights), 0
    rows = unpacked([packed(row) for row in labelled.rows])
    for row, message in enumerate(labelled.messages):
        pause = message.sent_at - labelled.messages[row - 1].sent_at if row else 0
        session += pause > SESSION_PAUSE_S
        index.append(record_of(message, session, UTC))
        index.put_vector(row, rows[row])
    return index


class _KeepingPacker(RecallPacker):
    """A packer that makes each line once, whatever packing it is given."""

    def __init__(self, counter: TokenCounter) -> None:
        super().__init__(counter, UTC)
        self._lines: dict[tuple[int, str, int], tuple[RecalledLine, int]] = {}

    def use(self, packing: Packing) -> None:
        """Pack by other constants from now on."""
        self.packing = packing

    def _line(
        self, context: AgentContext, message: Message, query: str, tokens: int
    ) -> tuple[RecalledLine, int]:
        key = (message.seq, query, tokens)
        if key not in self._lines:
            self._lines[key] = super()._line(context, message, query, tokens)
        return self._lines[key]


class Shown:
    """One conversation, with the indexes and lines that were needed so far."""

    def __init__(self, labelled: Labelled, counter: TokenCounter) -> None:
        self.labelled = labelled
        self._indexes: dict[tuple[object, ...], HybridIndex] = {}
        self._packer = _KeepingPacker(counter)
        self._exchanges: list[tuple[Message, ...]] = []
        for number, exchange in enumerate(exchanges(labelled.messages), 1):
            first = len(self._exchanges) + 1
            said = [replace(m, seq=first + i, exchange=number) for i, m in enumerate(exchange)]
            self._exchanges += [tuple(said)] * len(said)
        now = labelled.messages[-1].sent_at + DAY_S
        self._context = AgentContext(Scope.of_chat(1), None, now)  # type: ignore[arg-type]  # unread

    def recall(self, weights: Weights, k: int = 10) -> Shares:
        """Return the share of each question's evidence among `k` hits."""
        index = self._index(weights)
        rows = zip(self.labelled.questions, self.labelled.question_rows, strict=True)
        return np.array(
            [
                self.labelled.share(each, (hit.row for hit in index.search(each.text, row, k)))
                for each, row in rows
            ]
        )

    def lines(
        self, limits: Sequence[int], weights: Weights = DEFAULTS, packing: Packing = PACKING
    ) -> list[list[dict[int, str]]]:
        """Return for each question the lines by sequence within each limit of tokens."""
        self._packer.use(packing)
        index = self._index(weights)
        shown = []
        for question, row in zip(self.labelled.questions, self.labelled.question_rows, strict=True):
            found = [
                SearchResult(self._exchanges[hit.row], hit.score, hit.row + 1)
                for hit in index.search(question.text, row, RECALL_K)
            ]
            pack, text = self._packer.pack, question.text
            shown.append([pack(self._context, found, text, limit) for limit in limits])
        return shown

    def _index(self, weights: Weights) -> HybridIndex:
        """Return the index under these weights; one is built only if it would differ."""
        key = tuple(getattr(weights, name) for name in _READ_WHEN_INDEXING)
        if key not in self._indexes:
            if len(self._indexes) > 1:  # keep the first one, that of the product
                self._indexes.popitem()
            self._indexes[key] = index_of(self.labelled, weights)
        index = copy(self._indexes[key])
        index._lexical, index._times = copy(index._lexical), copy(index._times)
        for part in (index, index._lexical, index._times):
            part._weights = weights
        return index


def shown_of(folder: Sequence[Labelled]) -> list[Shown]:
    """Return the conversations of a folder."""
    counter = asyncio.run(TokenCounter.load())
    return [Shown(labelled, counter) for labelled in folder]
