"""Reads a conversation's stored history for the auditor."""

from collections import defaultdict
from dataclasses import dataclass

from tests.lab.simulator import telling
from tests.lab.simulator.store.stream import Stream

_EXCHANGE, _ROLE, _TEXT = 1, 3, 5
"""Where the value of a field stands in an entry of the history."""


@dataclass(frozen=True, slots=True)
class History:
    """What stands in it: each update that was said with its exchange, and answers by exchange."""

    said: dict[int, bytes]
    answers: dict[bytes, list[str]]


def history_of(log: Stream) -> History:
    """Return what stands in a history; of what is said twice, the later exchange."""
    said, answers = {}, defaultdict(list)
    for fields in log.entries.values():
        if fields[_ROLE] == b"user":
            for update_id in telling.own(text_of(fields)):
                said[update_id] = fields[_EXCHANGE]
        else:
            answers[fields[_EXCHANGE]].append(text_of(fields))
    return History(said, answers)


def said_in(log: Stream) -> list[int]:
    """Return the updates whose words stand in a history, each as often as it does."""
    words = (text_of(fields) for fields in log.entries.values() if fields[_ROLE] == b"user")
    return telling.all_own(" ".join(words))


def text_of(fields: list[bytes]) -> str:
    """Return the text of an entry."""
    return fields[_TEXT].decode()
