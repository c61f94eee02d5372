"""Measures what each ingredient of ranking and packing is worth: the figures without it.

    python -m tests.lab.ablation DIR|FILE [DIR|FILE ...]

It prints a Markdown table with three columns for each folder (for the format see `conversations`):
recall@10, and the evidence that a prompt shows within 700 and 1,100 tokens of recalled messages,
all in percent. For a FILE of talks (see `talks`) they are `shown`, `complete`, and the tokens of
small talk, by words alone. Six minutes on a free core for both folders and the talks.
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from bot.prompt.recalled import PACKING, Packing, RecallPacker
from memory.search.hybrid import HybridIndex
from memory.search.weights import DEFAULTS, Weights
from tests.lab.conversations import read_folder
from tests.lab.recall import percent
from tests.lab.shown import Shown, shown_of
from tests.lab.talks import measure
from tests.valkey import ValkeyServer

LIMITS = (700, 1_100)

VARIANTS: dict[str, Weights | Packing] = {
    "as shipped": DEFAULTS,
    "weak evidence finds any number": replace(DEFAULTS, max_weak=1_000),
    "weak evidence needs no rare word": replace(DEFAULTS, rare_share=1.0),
    "small talk is searched as a question": replace(DEFAULTS, min_words=0),
    "lists are not filled up": replace(DEFAULTS, floor_of_lists=inf),
    "no floor": replace(DEFAULTS, floor=-inf, floor_without_vectors=-inf),
    "words of neighbors do not count": replace(DEFAULTS, neighbor_boost=0),
    "an answer gets no more of its question": replace(DEFAULTS, answer_boost=0.6),
    "days of the question do not count": replace(DEFAULTS, date_bonus=0),
    "times and numbers do not count": replace(DEFAULTS, time_bonus=0),
    "summaries are not sought in answers": replace(DEFAULTS, summary_bonus=0),
    "sessions do not count": replace(DEFAULTS, session=0),
    "vectors of neighbors do not count": replace(DEFAULTS, dense_neighbor_boost=0),
    "mean vector not removed": replace(DEFAULTS, centring=0),
    "length does not count": replace(DEFAULTS, paragraph_words=inf),
    "roles do not count": replace(DEFAULTS, assistant_words=1, assistant_penalty=0),
    "questions do not count": replace(DEFAULTS, question_penalty=0),
    "function words count": replace(DEFAULTS, keep_function_words=True),
    "no stemmer": replace(DEFAULTS, snowball=False),
    "no message is shown long": replace(PACKING, long=0),
    "every message is shown long": replace(PACKING, short_tokens=PACKING.long_tokens),
    "lists are packed as other questions": replace(PACKING, long_in_list=PACKING.long),
    "near repeats are shown": replace(PACKING, alike=1),
}


def row(folder: Sequence[Shown], variant: Weights | Packing) -> list[float]:
    """Return recall@10 and the evidence shown within each limit, in percent."""
    weights = variant if isinstance(variant, Weights) else DEFAULTS
    packing = variant if isinstance(variant, Packing) else PACKING
    columns: list[list[float]] = [[] for _ in (10, *LIMITS)]
    for each in folder:
        columns[0] += each.recall(weights).tolist()
        asked = zip(each.labelled.questions, each.lines(LIMITS, weights, packing), strict=True)
        for question, shown in asked:
            for column, lines in zip(columns[1:], shown, strict=True):
                column.append(each.labelled.share(question, (seq - 1 for seq in lines)))
    return [percent(column) for column in columns]


def talk_row(file: Path, variant: Weights | Packing, redis: str) -> list[float]:
    """Return the same three columns for a file of talks, whose searches take the defaults."""
    weights = variant if isinstance(variant, Weights) else DEFAULTS
    packing = variant if isinstance(variant, Packing) else PACKING
    HybridIndex.__init__.__defaults__ = (None, weights)
    RecallPacker.__init__.__kwdefaults__ = {"is_numbered": False, "packing": packing}
    *_, everything, small = asyncio.run(measure(json.loads(file.read_text()), redis))
    return [float(str(e)) for e in (everything["shown"], everything["complete"], small["tokens"])]


def main(names: Sequence[str]) -> None:
    """Print the table."""
    files = [Path(name) for name in names if Path(name).is_file()]
    read = {name: shown_of(read_folder(Path(name))) for name in names if Path(name) not in files}
    heads = [f"{Path(name).name} {head}" for name in read for head in ("@10", *map(str, LIMITS))]
    heads += [f"{file.stem} {head}" for file in files for head in ("shown", "complete", "small")]
    print_row(["", *heads])
    print_row(["---"] * (1 + len(heads)))
    for name, variant in VARIANTS.items():
        figures = [figure for folder in read.values() for figure in row(folder, variant)]
        for file in files:
            with TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
                figures += talk_row(file, variant, server.url)
        print_row([name, *(f"{figure:.1f}" for figure in figures)])


def print_row(cells: Sequence[str]) -> None:
    sys.stdout.write(f"| {' | '.join(cells)} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
