"""Chooses each constant of ranking and packing without the conversation that is then measured.

    python -m tests.lab.tuning DIR [DIR ...]

Each constant is tried at a half, three quarters, four thirds and twice its value, the others as
they are. Ranking is judged by recall@10. Packing is judged by the mean of evidence shown and words
of the answer shown, within 700 tokens. The folders count alike, whatever their numbers of
questions (see `conversations` for the format).

It prints a Markdown table, one constant a row: its value; the value that is best on all
conversations, and how much better than ours it does there; the values that are best without one
conversation, with the numbers of such conversations; and how much better these do on the
conversation that was left out, in percentage points for each folder. If the last figures are below
zero, what is best on all is overfitted. The two rows at the end combine what was chosen. The floor
is not varied: these folders have no question that should find nothing. Ten minutes on a free core
for both folders of the README.
"""

import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from math import floor
from pathlib import Path

import numpy as np

from bot.prompt.recalled import PACKING, Packing
from memory.search.weights import DEFAULTS, Weights
from tests.lab.ablation import print_row
from tests.lab.context import shares
from tests.lab.conversations import read_folder
from tests.lab.shown import Shares, Shown, shown_of

FACTORS = (1 / 2, 3 / 4, 4 / 3, 2)
LIMIT = 700
FLOOR = {
    *("floor", "floor_without_vectors", "min_records", "closeness", "sufficient_closeness"),
    "min_related",
}
"""Constants that these folders cannot judge."""

Constants = Weights | Packing
Choice = Mapping[str, float]
"""A value for each constant by name."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """A conversation and the number of its folder."""

    folder: int
    shown: Shown

    def score(self, constants: Constants) -> Shares:
        """Return what each question gets under these constants, 0 to 1."""
        if isinstance(constants, Weights):
            return self.shown.recall(constants)
        scores = []
        lines = self.shown.lines([LIMIT], packing=constants)
        for question, (shown,) in zip(self.shown.labelled.questions, lines, strict=True):
            figures = shares(self.shown.labelled, question, shown)
            words = [figures["answer_words"]] if "answer_words" in figures else []
            scores.append(float(np.mean([figures["evidence"], *words])))
        return np.array(scores)


class Tuning:
    """What all values of all constants of one kind get in all conversations."""

    def __init__(self, ours: Constants, conversations: Sequence[Conversation]) -> None:
        self._ours = ours
        self._conversations = conversations
        self._all = range(len(conversations))
        self._base = [each.score(ours) for each in conversations]
        self._gains: dict[str, dict[float, list[Shares]]] = {}
        for name, values in _candidates(ours).items():
            self._gains[name] = {value: self._gain({name: value}) for value in values}

    def rows(self) -> list[list[str]]:
        """Return the rows of the table."""
        rows = []
        for name, gains in self._gains.items():
            best = self._best(name, self._all)
            left_out = [self._best(name, self._without(out)) for out in self._all]
            unseen = [gains[value][out] for out, value in enumerate(left_out)]
            chosen = ", ".join(f"{v:.3g} ({n})" for v, n in Counter(left_out).most_common())
            ours = f"{getattr(self._ours, name):.3g}"
            seen = self._points(gains[best])
            rows.append([f"`{name}`", ours, f"{best:.3g}", seen, chosen, self._points(unseen)])
        return [*rows, self._combined()]

    def _combined(self) -> list[str]:
        """Return the row in which all constants have the values that were chosen one by one."""
        together = self._gain({name: self._best(name, self._all) for name in self._gains})
        unseen = []
        for out in self._all:
            choice = {name: self._best(name, self._without(out)) for name in self._gains}
            unseen += self._gain(choice, [out])
        kind = type(self._ours).__name__.lower()
        return [f"all {kind}", "", "", self._points(together), "", self._points(unseen)]

    def _gain(self, choice: Choice, numbers: Sequence[int] | None = None) -> list[Shares]:
        constants = replace(self._ours, **choice)  # type: ignore[arg-type]  # an int stays an int
        chosen = self._all if numbers is None else numbers
        return [self._conversations[at].score(constants) - self._base[at] for at in chosen]

    def _best(self, name: str, numbers: Sequence[int]) -> float:
        """Return the value that gains most in these conversations; of equal ones, ours."""
        gains = self._gains[name]
        ours = getattr(self._ours, name)
        means = {value: self._mean(each, numbers) for value, each in gains.items()}
        return max(means, key=lambda value: (round(means[value], 9), value == ours))

    def _mean(self, gains: Sequence[Shares], numbers: Sequence[int]) -> float:
        return float(np.mean(list(self._by_folder(gains, numbers).values())))

    def _by_folder(self, gains: Sequence[Shares], numbers: Sequence[int]) -> dict[int, float]:
        grouped: defaultdict[int, list[float]] = defaultdict(list)
        for at in numbers:
            grouped[self._conversations[at].folder] += gains[at].tolist()
        return {folder: float(np.mean(each)) for folder, each in grouped.items()}

    def _without(self, out: int) -> list[int]:
        return [at for at in self._all if at != out]

    def _points(self, gains: Sequence[Shares]) -> str:
        points = self._by_folder(gains, self._all)
        return " / ".join(f"{100 * gain:+.2f}" for gain in points.values())


def _candidates(ours: Constants) -> dict[str, list[float]]:
    """Return the values to try for each constant that is a finite number, ours among them."""
    tried: dict[str, list[float]] = {}
    for field in fields(ours):
        value = getattr(ours, field.name)
        if isinstance(value, bool) or field.name in FLOOR:
            continue
        if isinstance(value, int):
            near = [floor(value * factor + 0.5) for factor in FACTORS] if value else [1, 2, 3]
            tried[field.name] = sorted({value, *near})
        else:
            tried[field.name] = sorted({value, *(value * factor for factor in FACTORS)})
    return tried


def main(names: Sequence[str]) -> None:
    """Print the table."""
    conversations = [
        Conversation(number, shown)
        for number, name in enumerate(names)
        for shown in shown_of(read_folder(Path(name)))
    ]
    heads = ["", "ours", "best on all", "gain there", "best without one", "gain on that one"]
    print_row(heads)
    print_row(["---"] * len(heads))
    for ours in (DEFAULTS, PACKING):
        for row in Tuning(ours, conversations).rows():
            print_row(row)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
