"""Vectors are packed small and found exactly."""

from collections.abc import Collection

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from memory.embeddings import Vectors
from memory.log import packed, unpacked
from memory.vectors import VectorIndex

WIDTH = 8

parts = st.floats(-1, 1, width=32)


def unit(rows: Vectors) -> Vectors:
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(np.where(norms > 0.01, rows / np.maximum(norms, 0.01), 0), np.float32)


unit_rows = st.integers(1, 40).flatmap(lambda n: arrays(np.float32, (n, WIDTH), elements=parts))
unit_rows = unit_rows.map(unit)
queries = arrays(np.float32, (1, WIDTH), elements=parts).map(lambda rows: unit(rows)[0])


def index_of(rows: Vectors) -> VectorIndex:
    index = VectorIndex()
    index.extend(list(range(1, len(rows) + 1)), rows)
    return index


def hits(
    index: VectorIndex, query: Vectors, floor: float = -1, exclude: Collection[int] = ()
) -> list[int]:
    return [seq for seq, _ in index.search(query, floor=floor, exclude=exclude)]


# --- packing


@given(row=st.integers(1, 300).flatmap(lambda dim: arrays(np.float32, (1, dim), elements=parts)))
def test_a_packed_unit_vector_comes_back_as_a_unit_vector_that_points_the_same_way(
    row: Vectors,
) -> None:
    """Rounding moves a part by at most 1/254 of the largest, which is at most the length."""
    original = unit(row)[0]
    stored = packed(original)
    [restored] = unpacked([stored])
    assert len(stored) == 4 + len(original)
    if not original.any():
        assert not restored.any()
        return
    sine = np.sqrt(len(original)) / 254
    assert np.linalg.norm(restored) == pytest.approx(1, abs=1e-5)
    assert original @ restored >= np.sqrt(max(0, 1 - sine**2)) - 1e-5


@given(rows=unit_rows)
def test_many_rows_are_unpacked_as_each_alone(rows: Vectors) -> None:
    together = unpacked([packed(row) for row in rows])
    alone = np.concatenate([unpacked([packed(row)]) for row in rows])
    assert together.dtype == np.float32
    assert np.array_equal(together, alone)


# --- search


@given(rows=unit_rows, query=queries, floor=parts, excluded=st.sets(st.integers(1, 40)))
def test_search_yields_everything_from_the_floor_up_best_first(
    rows: Vectors, query: Vectors, floor: float, excluded: set[int]
) -> None:
    found = list(index_of(rows).search(query, floor=floor, exclude=excluded))
    scores = {seq: float(score) for seq, score in enumerate(rows @ query, start=1)}
    assert [score for _, score in found] == sorted((score for _, score in found), reverse=True)
    assert {seq for seq, _ in found} == {
        seq for seq, score in scores.items() if score >= floor and seq not in excluded
    }


@given(rows=unit_rows, query=queries, cuts=st.lists(st.integers(0, 40), max_size=5))
def test_an_index_that_grew_piece_by_piece_finds_the_same(
    rows: Vectors, query: Vectors, cuts: list[int]
) -> None:
    grown = VectorIndex()
    ends = sorted({min(cut, len(rows)) for cut in cuts} | {len(rows)})
    for start, end in zip([0, *ends], ends, strict=False):
        grown.extend(list(range(start + 1, end + 1)), rows[start:end])
    assert (len(grown), grown.last_seq) == (len(rows), len(rows))
    assert hits(grown, query) == hits(index_of(rows), query)


def test_of_equals_the_older_comes_first() -> None:
    rows = np.tile(np.eye(1, WIDTH, dtype=np.float32), (3, 1))
    assert hits(index_of(rows), rows[0]) == [1, 2, 3]


def test_an_empty_index_finds_nothing() -> None:
    assert (hits(VectorIndex(), np.ones(WIDTH, np.float32)), VectorIndex().last_seq) == ([], 0)


def test_a_query_of_another_model_finds_nothing() -> None:
    assert hits(index_of(np.eye(3, WIDTH, dtype=np.float32)), np.ones(4, np.float32)) == []


def test_rows_of_another_width_take_the_place_of_what_they_cannot_be_compared_with() -> None:
    index = index_of(np.eye(3, WIDTH, dtype=np.float32))
    index.extend([4, 5], np.eye(2, 4, dtype=np.float32))
    assert (len(index), index.last_seq) == (2, 5)
    assert hits(index, np.eye(1, 4, dtype=np.float32)[0], floor=0.5) == [4]


def test_a_short_conversation_holds_little_memory() -> None:
    index = index_of(np.eye(2, 1536, dtype=np.float32))
    assert index.nbytes < 64 * 1024
