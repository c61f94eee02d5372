"""A reproducible long conversation of one person with an assistant, in sessions.

Each session has a topic, and topics return. The sentences are made up, or come from a folder with
`conversations.json` (see `conversations`), which is research data and never part of this
repository. Only single sentences make sense. What matters here are lengths and recurring words.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Final, Literal

Pace = Literal["brisk", "typing"]
"""How soon the person continues: after 5 to 25 s, or after reading and typing."""

SAID_WORDS: Final = (12, 60)
ANSWER_WORDS: Final = (60, 200)
SESSION_TURNS: Final = (4, 24)
PAUSE_S: Final = (2 * 3_600.0, 3 * 86_400.0)
_BRISK_S: Final = (5.0, 25.0)
_WORDS_READ_A_SECOND: Final = 4.0
_WORDS_TYPED_A_SECOND: Final = 40 / 60
_SENTENCES: Final = 60
_MIN: Final = 8
_WORDING: Final[dict[str, list[str]]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text("utf-8")
)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message, `pause_s` after the last answer, and the answer to it."""

    pause_s: float
    said: str
    answer: str


@dataclass(frozen=True, slots=True)
class Topic:
    """Sentences of a person and of the assistant about one topic."""

    said: Sequence[str]
    answers: Sequence[str]


def conversation(turns: int, pace: Pace, topics: Sequence[Topic]) -> Iterator[Exchange]:
    """Yield so many exchanges; the texts do not depend on the pace."""
    random, left, answer = Random(turns), 0, ""
    topic = topics[0]
    for _ in range(turns):
        begins = not left
        if begins:
            left, topic = random.randint(*SESSION_TURNS), random.choice(topics)
        left -= 1
        said, pause_s = _drawn(random, topic.said, SAID_WORDS), random.uniform(*PAUSE_S)
        brisk_s = random.uniform(*_BRISK_S)
        if not begins:
            typed_s = _words(answer) / _WORDS_READ_A_SECOND + _words(said) / _WORDS_TYPED_A_SECOND
            pause_s = brisk_s if pace == "brisk" else typed_s
        answer = _drawn(random, topic.answers, ANSWER_WORDS)
        yield Exchange(pause_s, said, answer)


def read_topics(folder: Path) -> list[Topic]:
    """Return a topic for each session of a folder in which both sides have enough sentences."""
    topics = []
    for each in json.loads((folder / "conversations.json").read_text()):
        person = each["turns"][0]["speaker"]
        for _, session in groupby(each["turns"], key=lambda turn: turn["session"]):
            said: list[str] = []
            answers: list[str] = []
            for turn in session:
                text = turn["text"].removeprefix(f"{turn['speaker']}: ")
                whose = said if turn["speaker"] == person else answers
                whose += [each for each in re.split(r"(?<=[.!?])\s+", text) if each.strip()]
            if min(len(said), len(answers)) >= _MIN:
                topics.append(Topic(said, answers))
    return topics


def made_up_topics() -> list[Topic]:
    random = Random(1)
    return [
        Topic(
            _filled(random, _WORDING["said"], words.split()),
            _filled(random, _WORDING["answered"], words.split()),
        )
        for words in _WORDING["topics"]
    ]


def _drawn(random: Random, sentences: Sequence[str], word_range: tuple[int, int]) -> str:
    """Return sentences with a random number of words in a range; the last one may be cut."""
    wanted = random.randint(*word_range)
    drawn: list[str] = []
    while len(drawn) < wanted:
        drawn += random.choice(sentences).split()
    return " ".join(drawn[:wanted])


def _filled(random: Random, forms: Sequence[str], words: Sequence[str]) -> list[str]:
    return [
        random.choice(forms).format(
            *random.sample(words, 3),
            name=random.choice(_WORDING["names"]),
            city=random.choice(_WORDING["cities"]),
            n=random.randint(2, 90),
            day=random.choice(_WORDING["days"]),
        )
        for _ in range(_SENTENCES)
    ]


def _words(text: str) -> int:
    return len(text.split())
