"""A reproducible long conversation of one person with an assistant, in sessions.

Each session has a topic, and topics return. The sentences are made up, or come from a folder with
`conversations.json` (see `conversations`), which is research data and never part of this
repository. Only single sentences make sense. What matters here are lengths and recurring words.
"""

import json
import re
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
                (said if turn["speaker"] == person else answers).extend(_sentences(text))
            if min(len(said), len(answers)) >= _MIN:
                topics.append(Topic(said, answers))
    return topics


def made_up_topics() -> list[Topic]:
    random = Random(1)
    return [
        Topic(_filled(random, _SAID, words.split()), _filled(random, _ANSWERED, words.split()))
        for words in _TOPICS
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
            name=random.choice(_NAMES),
            city=random.choice(_CITIES),
            n=random.randint(2, 90),
            day=random.choice(_DAYS),
        )
        for _ in range(_SENTENCES)
    ]


def _sentences(text: str) -> list[str]:
    return [each for each in re.split(r"(?<=[.!?])\s+", text) if each.strip()]


def _words(text: str) -> int:
    return len(text.split())


_DAYS: Final = ("Monday", "Tuesday", "Thursday", "Saturday", "the weekend", "next month", "spring")
_NAMES: Final = ("Anna", "Marek", "Ines", "Tobias", "Mrs Novak", "Dr Adeyemi", "my sister")
_CITIES: Final = ("Graz", "Porto", "the office", "the old town", "Bergen", "home", "the lake")
_TOPICS: Final = (
    "sailing boat mast harbour varnish keel mooring regatta crew rudder",
    "kitchen oven tiles plumber cabinets worktop sink painter quote",
    "marathon training knee shoes intervals physio stretching plan race",
    "thesis chapter supervisor survey statistics draft deadline committee sources",
    "garden tomatoes slugs compost greenhouse seeds roses fence rain",
    "piano scales recital teacher sonata pedal metronome practice concert",
    "allergy nuts doctor inhaler pollen prescription appointment symptoms pharmacy",
    "flat lease landlord deposit neighbours heating balcony viewing agent",
    "dog vet puppy leash obedience vaccination walks kennel treats",
    "invoice tax accountant receipts deadline refund expenses form office",
    "wedding guests caterer venue speech invitations band dress ring",
    "bicycle brakes gears commute helmet puncture workshop saddle lights",
    "novel plot character editor scene dialogue ending publisher manuscript",
    "school homework maths teacher exam daughter tutoring report parents",
    "server database backup migration release outage logs cluster alerts",
    "trip flights hotel museum train passport luggage itinerary guide",
    "bread sourdough starter flour proofing crust recipe oven loaf",
    "camera lens tripod exposure portrait print exhibition shutter light",
    "job interview salary offer recruiter team contract notice portfolio",
    "sleep insomnia coffee routine alarm melatonin nap stress breathing",
    "chess opening endgame tournament club rating clock bishop sacrifice",
    "car insurance mechanic tyres inspection engine mileage battery garage",
    "band drummer rehearsal amplifier song lyrics gig recording bass",
    "solar panels roof inverter subsidy meter battery installer permit kilowatt",
)
_SAID: Final = (
    "I spoke with {name} about the {0} and we still do not agree on the {1}.",
    "Could you help me decide whether the {0} should come before the {1}?",
    "My {0} was fine until {day}, and now the {1} makes trouble again.",
    "I would rather spend {n} euros on the {0} than wait for the {1}.",
    "{name} lives in {city} now and knows a lot about the {0}.",
    "What did we say about the {0} last time?",
    "I am worried that the {0} will not be ready by {day}.",
    "By the way, I have {n} minutes before I have to leave for {city}.",
    "Honestly, the {0} and the {1} are harder than I thought, but I like it.",
    "Please keep it short, I only need to know what to do with the {0}.",
    "We are going to {city} on {day}, so the {0} has to wait.",
    "I prefer the {0} without the {1}, that has always worked for me.",
)
_ANSWERED: Final = (
    "That sounds like a sensible plan, and the {0} can wait until the {1} is settled.",
    "If {name} insists on the {0}, ask for the reason before you change the {1}.",
    "Here is what I would do first: write down what the {0} needs, then check the {1} once more.",
    "For the {0} you should allow about {n} minutes, and a little more if the {1} is new to you.",
    "It is quite normal that the {0} feels slow at first; most people notice a change by {day}.",
    "You mentioned {city} earlier, so it may be easiest to look after the {0} there.",
    "Compare two or three offers for the {0}, and keep the {1} out of it until you know the {2}.",
    "- **{0}**: begin small, note what happens, and stop when the {1} gets in the way.",
    "The usual mistake is to start with the {1} although the {0} decides everything else.",
    "Would you like me to put the steps for the {0} into a short list for {day}?",
    "A simple rule helps here: never touch the {0} on the same day as the {2}.",
    "That depends on the {1}: with a good one the {0} lasts years, with a poor one {n} weeks.",
)
