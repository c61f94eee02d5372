"""Every constant of the ranking in one value, so that a benchmark can vary each.

The defaults were chosen on two sets of conversations, each in the middle of a range in which recall
hardly changes. `tests/lab/README.md` says what each ingredient is worth.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights and limits; a deviation is a standard deviation of the dense scores."""

    # Lexical retriever.
    saturation: float = 0.9  # BM25's k1: how soon repeating a word stops to count
    paragraph_words: float = 50.0  # length that costs nothing; longer texts count less; inf = never
    neighbor_boost: float = 0.6  # share of a word's weight that each neighbor gets, per step
    answer_boost: float = 1.2  # the same for what a person says right after a person's question
    assistant_words: float = 0.5  # weight of a word that the assistant wrote; a person's is 1

    # Dense retriever.
    dense_neighbor_boost: float = 0.15  # share of the score that each of four neighbors adds

    # Blend.
    lexical: float = 4.0  # deviations that the best lexical match is worth
    session: float = 0.3  # share of the best own score of a session that all its records get
    assistant_penalty: float = 1.5  # deviations; the assistant repeats what people said
    summary_bonus: float = 2.5  # deviations for the assistant's words if one asks for a summary
    question_penalty: float = 0.5  # deviations; a question seeks what a statement holds
    date_bonus: float = 2.0  # deviations for a record of a day that the question names
    relative_date_bonus: float = 3.0  # the same if it names the day by its distance: no word helps
    date_fade_days: float = 10.0  # days until that bonus has faded to 0
    time_bonus: float = 1.0  # deviations for a time or a number if the question asks for one
    min_related: float = 1.5  # deviations from which a record counts as related to another

    # Floor.
    floor: float = 0.9  # evidence below which nothing is returned; -inf = no floor
    floor_without_vectors: float = 0.3  # the same if there are no vectors
    floor_of_lists: float = 0.8  # the same for a list to be filled up with what tells most
    rare_share: float = 0.02  # a word of so many records is rare; weak evidence needs one
    min_words: int = 4  # fewer words that ask nothing find only what has the rarest of them
    max_weak: int = 6  # so many of these at most, and with weak evidence
    min_records: int = 32  # with fewer records one shared word is enough evidence
    closeness: float = 0.3  # evidence that one deviation of closeness is worth
    min_lexical: float = 0.8  # a hit needs this many deviations of its lexical score ...
    min_dense: float = 1.0  # ... or of its dense score
    sufficient_closeness: float = 1.8  # enough without a shared word (another language)


DEFAULTS: Final = Weights()  # the weights of the product
