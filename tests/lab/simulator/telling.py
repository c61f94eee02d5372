"""What is simulated says itself what it is about: words name their update, replies what they saw.

So a look at a text tells whether anything erased is in it.
"""

import re
from dataclasses import dataclass

from memory.message import Message

_OWN = re.compile(r"\bw(\d+)\b")
_SEEN = re.compile(r"\bs(\d+)\b")
_PART = re.compile(r"#(\d+) (\d+)/(\d+)$")


@dataclass(frozen=True, slots=True)
class PartName:
    """Which part of which reply a text is; replies are numbered as the model made them."""

    reply: int
    number: int
    of: int


def words(update_id: int) -> str:
    """Return what a person says in an update."""
    return f"w{update_id}"


def reply(said: str, seen: "frozenset[int]") -> str:
    """Return an answer that repeats what was said and names what of before it has seen."""
    return " ".join(["re", said.replace("\n", " "), *(f"s{each}" for each in sorted(seen))])


def part(text: str, name: PartName) -> str:
    """Return a part's text with its name at the end."""
    return f"{text} #{name.reply} {name.number}/{name.of}"


def part_name(text: str) -> PartName | None:
    """Return which part a text is, nothing for what is no part of a reply."""
    found = _PART.search(text)
    return PartName(*map(int, found.groups())) if found else None


def own(text: str) -> frozenset[int]:
    """Return the updates whose words are in a text."""
    return frozenset(all_own(text))


def all_own(text: str) -> list[int]:
    """Return the updates whose words are in a text, each as often as they are."""
    return list(map(int, _OWN.findall(text)))


def mentioned(text: str) -> frozenset[int]:
    """Return the updates that a text contains or rests on."""
    return own(text) | frozenset(map(int, _SEEN.findall(text)))


def told_by_people(messages: "tuple[Message, ...] | list[Message]") -> frozenset[int]:
    """Return the updates whose words people said in some messages."""
    return frozenset(each for m in messages if m.role == "user" for each in own(m.text))
