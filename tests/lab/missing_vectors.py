"""Measures recall when the oldest messages of a conversation have lost their vectors.

    python -m tests.lab.missing_vectors DIR

The output is one JSON line: recall@10 in percent by the share that is missing. Because of this
result, a conversation that must drop vectors drops all of them.
"""

import json
import sys
from collections import defaultdict
from datetime import UTC
from pathlib import Path

from memory.search.hybrid import HybridIndex
from memory.search.message_search import SESSION_PAUSE_S, record_of
from tests.lab.conversations import Labelled, read_folder
from tests.lab.recall import percent, share

MISSING = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)


def index_of(labelled: Labelled, missing: float) -> HybridIndex:
    """Return the index of a conversation whose oldest messages have no vectors."""
    index, session, last_at = HybridIndex(), 0, 0.0
    for row, message in enumerate(labelled.messages):
        session += message.sent_at - last_at > SESSION_PAUSE_S
        last_at = message.sent_at
        index.append(record_of(message, session, UTC))
        if row >= missing * len(labelled.messages):
            index.put_vector(row, labelled.rows[row])
    return index


def main(folder: Path) -> None:
    """Measure one folder."""
    recalls: dict[str, list[float]] = defaultdict(list)
    for labelled in read_folder(folder):
        for missing in MISSING:
            index = index_of(labelled, missing)
            recalls[f"{missing:.0%}"] += [
                share(labelled, question, index.search(question.text, row, 10))
                for question, row in zip(labelled.questions, labelled.question_rows, strict=True)
            ]
    figures = {missing: percent(shares) for missing, shares in recalls.items()}
    sys.stdout.write(json.dumps({"dir": str(folder), "missing": figures}) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
