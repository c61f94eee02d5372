"""Measures what each ingredient of the ranking is worth: recall@10 without it.

    python -m tests.lab.ablation DIR [DIR ...]

It prints a Markdown table with one column for each folder (for the format see `conversations`). It
uses the index without the store, because the store does not change a ranking.
"""

import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC
from math import inf
from pathlib import Path

from memory.scopes.log import packed, unpacked
from memory.search.hybrid import HybridIndex
from memory.search.message_search import SESSION_PAUSE_S, record_of
from memory.search.weights import DEFAULTS, Weights
from tests.lab.conversations import Labelled, read_folder
from tests.lab.recall import percent, share

VARIANTS: dict[str, Weights] = {
    "as shipped": DEFAULTS,
    "no floor": replace(DEFAULTS, floor=-inf, floor_without_vectors=-inf),
    "words of neighbors do not count": replace(DEFAULTS, neighbor_boost=0),
    "an answer gets no more of its question": replace(DEFAULTS, answer_boost=0.6),
    "days of the question do not count": replace(DEFAULTS, date_bonus=0),
    "times and numbers do not count": replace(DEFAULTS, time_bonus=0),
    "sessions do not count": replace(DEFAULTS, session=0),
    "vectors of neighbors do not count": replace(DEFAULTS, dense_neighbor_boost=0),
    "mean vector not removed": replace(DEFAULTS, centring=0),
    "length does not count": replace(DEFAULTS, paragraph_words=inf),
    "roles do not count": replace(DEFAULTS, assistant_words=1, assistant_penalty=0),
    "questions do not count": replace(DEFAULTS, question_penalty=0),
    "function words count": replace(DEFAULTS, keep_function_words=True),
    "no stemmer": replace(DEFAULTS, snowball=False),
}


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


def recall(folder: Sequence[Labelled], weights: Weights) -> float:
    """Return recall@10 in percent."""
    shares = []
    for labelled in folder:
        index = index_of(labelled, weights)
        for question, row in zip(labelled.questions, labelled.question_rows, strict=True):
            shares.append(share(labelled, question, index.search(question.text, row, 10)))
    return percent(shares)


def main(names: Sequence[str]) -> None:
    """Print the table."""
    folders = [read_folder(Path(name)) for name in names]
    lines = [["recall@10", *(Path(name).name for name in names)], ["---"] * (1 + len(names))]
    for variant, weights in VARIANTS.items():
        lines.append([variant, *(f"{recall(folder, weights):.1f}" for folder in folders)])
    for line in lines:
        sys.stdout.write(f"| {' | '.join(line)} |\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
