"""Generated conversations: short texts, and unit vectors around a common direction."""

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from memory.scopes.log import packed
from memory.search.arrays import Flags, Floats
from memory.search.hybrid import HybridIndex
from memory.search.message_search import Hit, IndexRecord

WIDTH = 12

_WORDS = (
    "lisbon harbour bakery violin volcano orchard ferry kettle lantern compass saddle marble "
    "pepper anchor blanket thunder meadow cabinet guitar puzzle"
)
_VOCABULARY = _WORDS.split()


def unit(vector: Floats) -> Floats:
    return np.asarray(vector / np.linalg.norm(vector), np.float32)


def vector_of(seed: int) -> Floats:
    """Return a unit vector that shares a direction with all others."""
    return unit(np.random.default_rng(seed).standard_normal(WIDTH).astype(np.float32) + 0.5)


vectors = st.integers(0, 10_000).map(vector_of)
texts = st.lists(st.sampled_from(_VOCABULARY), min_size=1, max_size=8).map(" ".join)
questions = st.lists(st.sampled_from(_VOCABULARY), min_size=1, max_size=4).map(" ".join)


Said = tuple[list[IndexRecord], Sequence[Floats | None]]
"""Records, and the vectors of those that have one."""


@st.composite
def conversations(draw: st.DrawFn, most: int = 12) -> Said:
    """Draw records of some sessions: questions, answers, and some without a vector."""
    records: list[IndexRecord] = []
    session = 0
    for _ in range(draw(st.integers(1, most))):
        session += draw(st.booleans())
        records.append(
            IndexRecord(
                text=draw(texts) + draw(st.sampled_from(["", ".", "?"])),
                session=session,
                by_assistant=draw(st.booleans()),
            )
        )
    return records, [draw(st.none() | vectors) for _ in records]


def index_of(records: Sequence[IndexRecord], of_rows: Sequence[Floats | None] = ()) -> HybridIndex:
    index = HybridIndex()
    if records:
        index.extend(records)
    for row, vector in enumerate(of_rows):
        if vector is not None:
            index.put_stored([row], [packed(vector)])
    return index


def rows(hits: Sequence[Hit]) -> list[int]:
    return [hit.row for hit in hits]


def scores(hits: Sequence[Hit]) -> dict[int, float]:
    return {hit.row: hit.score for hit in hits}


def mask(size: int, allowed: set[int]) -> Flags:
    return np.isin(np.arange(size), sorted(allowed))
