"""Every constant of the ranking, in one value that a benchmark can vary.

The defaults were chosen on two sets of conversations at once, inside broad plateaus; README says
what each is worth. `Weights(lent=0)` and the like switch one ingredient off.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """What counts for how much; deviations are those of the dense leg."""

    # Lexical leg.
    saturation: float = 0.9  # BM25's k1: how soon repeating a word stops to count
    paragraph: float = 50.0  # words up to which a length is not held against a record; inf = never
    boosted: float = 0.6  # share of a word's weight lent to each neighbour, again to the next one
    echo: float = 0.5  # weight of a word in the assistant's mouth, a person's being 1
    keep_function_words: bool = False  # whether "where" and "did" of a question count as words
    snowball: bool = True  # stem by language; otherwise words are cut to their first letters

    # Dense leg.
    centring: float = 1.0  # share of the conversation's mean vector that is taken out
    shared: float = 0.1  # share of the dense score lent by each of two records before and behind

    # Blend.
    words: float = 5.0  # deviations that the best lexical match is worth
    session: float = 0.3  # share of a sitting's best own score that all of the sitting get
    assistant: float = 1.5  # deviations by which the assistant, who echoes people, starts lower
    question: float = 0.5  # deviations by which a text that asks starts lower: it seeks, as we do
    outstanding: float = 1.5  # deviations from which a record counts as related to another

    # Floor.
    floor: float = 1.0  # evidence below which nothing is returned; -inf = no floor
    floor_words: float = 0.4  # the same where there is no vector to judge by
    few: int = 32  # records below which rare and unrelated mean little: any word in common will do
    close: float = 0.3  # evidence that one deviation of closeness is worth
    least_words: float = 1.0  # deviations of words, or else of closeness, that make a record a hit
    least_dense: float = 1.0
    close_alone: float = 1.8  # closeness that suffices without a common word (another language)


DEFAULTS: Final = Weights()
"""What the product runs with."""
