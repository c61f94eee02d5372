"""Markers in simulated texts: a message names its update, an answer names what the model saw.

So a look at any text shows whether it contains something that was erased.
"""

import re
from collections import defaultdict
from dataclasses import dataclass

from memory.message import Message
from tests.lab.simulator.store.streams import Stream

_WRITTEN = re.compile(r"\bw(\d+)\b")
_SEEN = re.compile(r"\bs(\d+)\b")
_PART = re.compile(r"#(\d+) (\d+)/(\d+)$")
_EXCHANGE, _ROLE, _TEXT = 1, 3, 5  # positions of the values in an entry of the stored history


@dataclass(frozen=True, slots=True)
class PartName:
    """Which part of which reply a text is; replies are numbered as the model made them."""

    reply: int
    number: int
    of: int


@dataclass(frozen=True, slots=True)
class History:
    """A stored history: the exchange of each update in it, and the answers of each exchange.

    `tasks` are the updates that asked for a task in it.
    """

    said: dict[int, bytes]
    tasks: frozenset[int]
    answers: dict[bytes, list[str]]


def user_text(update_id: int) -> str:
    """Return the text that a person writes in an update."""
    return f"w{update_id}"


def answer_text(said: str, seen: "frozenset[int]") -> str:
    """Return an answer that repeats the question and names the earlier updates that it saw."""
    return " ".join(["re", said.replace("\n", " "), *(f"s{each}" for each in sorted(seen))])


def part_text(text: str, name: PartName) -> str:
    """Return a part's text with its name at the end."""
    return f"{text} #{name.reply} {name.number}/{name.of}"


def part_name(text: str) -> PartName | None:
    """Return which part a text is; `None` if it is not part of a reply."""
    found = _PART.search(text)
    return PartName(*map(int, found.groups())) if found else None


def written_in(text: str) -> frozenset[int]:
    """Return the updates whose text is in a text."""
    return frozenset(all_written_in(text))


def all_written_in(text: str) -> list[int]:
    """Return the updates whose text is in a text, each as often as it occurs."""
    return list(map(int, _WRITTEN.findall(text)))


def mentioned(text: str) -> frozenset[int]:
    """Return the updates that a text contains or depends on."""
    return written_in(text) | frozenset(map(int, _SEEN.findall(text)))


def written_by_people(messages: "tuple[Message, ...] | list[Message]") -> frozenset[int]:
    """Return the updates whose text is in the people's messages among these."""
    return frozenset(each for m in messages if m.role == "user" for each in written_in(m.text))


def history_of(log: Stream) -> History:
    """Return a stored history; if an update occurs twice, it has its later exchange."""
    said, answers = {}, defaultdict(list)
    tasks: set[int] = set()
    for fields in log.entries.values():
        if fields[_ROLE] == b"user":
            tasks |= mentioned(entry_text(fields)) - written_in(entry_text(fields))
            for update_id in written_in(entry_text(fields)):
                said[update_id] = fields[_EXCHANGE]
        else:
            answers[fields[_EXCHANGE]].append(entry_text(fields))
    return History(said, frozenset(tasks), answers)


def written_in_log(log: Stream) -> list[int]:
    """Return the updates whose text is in a stored history, each as often as it occurs."""
    texts = (entry_text(fields) for fields in log.entries.values() if fields[_ROLE] == b"user")
    return all_written_in(" ".join(texts))


def entry_text(fields: list[bytes]) -> str:
    return fields[_TEXT].decode()
