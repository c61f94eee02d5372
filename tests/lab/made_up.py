"""A reproducible made-up conversation of any length, with realistic texts and vectors.

A message has 200 characters. Half of its words are function words; the others come from a
vocabulary in which few words are frequent. A vector has 512 dimensions and is the sum of a
direction of the conversation, one of the session, and one of the message. The data is made for
measuring time and size. It says nothing about how well something is found.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from memory.message import Message
from memory.search.embeddings import Vectors
from tests.lab.conversations import Labelled, Question, unit

ANN, BEN = 5_000_000_001, 5_000_000_002
DIMENSIONS: Final = 512
QUESTIONS: Final = 200
CHARACTERS: Final = 200
_SESSION_MESSAGES: Final = 20
_EXCHANGE_S: Final = 60
_PAUSE_S: Final = 86_400
_BEGAN: Final = 1.7e9
_WORDS: Final = 22
_FUNCTION_WORDS: Final = "the a to and of in i it is that you was for on with my we have".split()  # noqa: SIM905 - read as words

Strings = npt.NDArray[np.str_]


def made_up(size: int) -> Labelled:
    """Return `size` messages of Ann, Ben and the assistant, which answers each in turn."""
    random = np.random.default_rng(size)
    texts = _texts(random, size)
    messages = tuple(_message(number, text) for number, text in enumerate(texts))
    rows = _rows(random, size)
    asked = random.integers(0, size, QUESTIONS)
    question_rows = rows[asked] + random.standard_normal((QUESTIONS, DIMENSIONS)) / 23
    return Labelled(
        name=str(size),
        messages=messages,
        ids=tuple(map(str, range(size))),
        rows=rows,
        questions=tuple(_question(random, texts[at], int(at)) for at in asked),
        question_rows=unit(question_rows.astype(np.float32)),
    )


def short_texts(count: int) -> list[str]:
    """Return what people say in a made-up conversation, each half as long as there."""
    return [message.text[: CHARACTERS // 2] for message in made_up(2 * count).messages[::2]]


def _message(number: int, text: str) -> Message:
    exchange, is_answer = divmod(number, 2)
    speaker = (ANN, "Ann") if exchange % 2 == 0 else (BEN, "Ben")
    return Message(
        seq=number + 1,
        exchange=exchange + 1,
        role="assistant" if is_answer else "user",
        text=text,
        sent_at=_BEGAN + _EXCHANGE_S * number + _PAUSE_S * (number // _SESSION_MESSAGES),
        sender_id=0 if is_answer else speaker[0],
        sender_name="" if is_answer else speaker[1],
        message_ids=(100_000 + number,),
        tokens=50,
    )


def _texts(random: np.random.Generator, size: int) -> list[str]:
    vocabulary = _vocabulary(random)
    ranks = np.arange(len(vocabulary)) + 100
    chosen = random.choice(vocabulary, (size, _WORDS), p=1 / ranks / (1 / ranks).sum())
    between = random.choice(_FUNCTION_WORDS, (size, _WORDS))
    pairs = np.stack([between, chosen.astype(str)], axis=2).reshape(size, 2 * _WORDS)
    return [" ".join(words)[:CHARACTERS] for words in pairs.tolist()]


def _vocabulary(random: np.random.Generator) -> Strings:
    syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
    words = {"".join(random.choice(syllables, length)) for length in [2, 3, 4] * 6_000}
    return random.permutation(sorted(words))


def _question(random: np.random.Generator, text: str, at: int) -> Question:
    words = random.choice(text.split()[1:-1:2], 4, replace=False)
    return Question(f"What did we say about {' '.join(words)}?", "", frozenset({str(at)}))


def _rows(random: np.random.Generator, size: int) -> Vectors:
    common = random.standard_normal(DIMENSIONS, np.float32)
    topics = random.standard_normal((size // _SESSION_MESSAGES + 1, DIMENSIONS), np.float32)
    own = random.standard_normal((size, DIMENSIONS), np.float32)
    return unit(own + 0.7 * topics.repeat(_SESSION_MESSAGES, axis=0)[:size] + 0.5 * common)
