"""The re-query finds records that are related to the best hit; they follow the hits."""

import numpy as np
from hypothesis import given

from memory.search.arrays import Floats
from memory.search.hybrid import HybridIndex
from memory.search.message_search import IndexRecord
from tests.memory.search.conversations import (
    conversations,
    index_of,
    mask,
    questions,
    rows,
    unit,
    vector_of,
    vectors,
)

WIDTH = 64
FIRST, TANGENT = 7, 20


def planted() -> tuple[HybridIndex, Floats]:
    """Return an index of 40 records; the related one resembles only the answer."""
    random = np.random.default_rng(1)
    rows_of = random.standard_normal((40, WIDTH)).astype(np.float32)
    question = random.standard_normal(WIDTH).astype(np.float32)
    rows_of[FIRST] = question + 0.5 * rows_of[FIRST]
    rows_of[TANGENT] = rows_of[FIRST] - 0.9 * question + 0.3 * rows_of[TANGENT]
    index = HybridIndex()
    for number, row in enumerate(rows_of):
        index.extend([IndexRecord(f"filler{number}", number, vector=unit(row))])
    return index, unit(question)


def test_a_related_record_follows_the_direct_hits() -> None:
    index, question = planted()
    direct = index.search("filler7", question, 3)
    assert rows(direct)[0] == FIRST
    assert TANGENT not in rows(direct)
    assert rows(index.related(direct, 3))[0] == TANGENT


def test_a_related_record_outside_the_mask_is_not_found() -> None:
    index, question = planted()
    direct = index.search("filler7", question, 3)
    allowed = mask(len(index), set(range(40)) - {TANGENT})
    assert TANGENT not in rows(index.related(direct, 3, allowed))


@given(conversations(), questions, vectors)
def test_related_records_never_repeat_a_direct_hit(
    records: list[IndexRecord], question: str, vector: Floats
) -> None:
    index = index_of(records)
    direct = index.search(question, vector, 4)
    assert not set(rows(direct)) & set(rows(index.related(direct, 9)))


def test_a_hit_without_a_vector_has_no_related_records() -> None:
    index = index_of([IndexRecord("lantern", 0), IndexRecord("kettle", 1, vector=vector_of(1))])
    assert index.related(index.search("lantern", None, 1), 3) == []
