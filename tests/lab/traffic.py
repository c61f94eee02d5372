"""Sorts the round trips to Redis by purpose: intake, turn, learning."""

from collections.abc import Sequence
from dataclasses import dataclass

from tests.lab.wire_tap import RoundTrip, WireTap


@dataclass(frozen=True, slots=True)
class Traffic:
    """The round trips of one turn, by purpose."""

    intake: Sequence[RoundTrip]
    turn: Sequence[RoundTrip]
    learning: Sequence[RoundTrip]

    @classmethod
    def of(cls, passed: Sequence[RoundTrip], person_id: int) -> "Traffic":
        """Sort the round trips from an intake until everything was learned.

        A round trip that names neither the conversation nor the person does not belong to the turn,
        except the acknowledgement of the wake-up. Learning begins after the commit.
        """
        tags = (f"c:{person_id}:".encode(), f"u:{person_id}".encode())
        ours = [trip for trip in passed if any(map(trip.is_about, tags)) or "ack" in trip.names]
        intake = [trip for trip in ours if {"intake", "XADD"} & set(trip.names)]
        committed = next(at for at, trip in enumerate(ours) if "commit" in trip.names)
        rest = [trip for trip in ours[committed + 1 :] if trip not in intake]
        end = [trip for trip in rest if "ack" in trip.names]
        return cls(
            intake=intake,
            turn=[trip for trip in ours[: committed + 1] if trip not in intake] + end,
            learning=[trip for trip in rest if trip not in end],
        )

    @property
    def steps(self) -> list[str]:
        """The commands of intake and turn, one entry for each round trip."""
        return ["+".join(trip.names) for trip in (*self.intake, *self.turn)]


def is_learned(tap: WireTap, begun: int) -> bool:
    """Whether the turn that began at this position is over, with the learning after it."""
    names = [name for trip in tap.passed[begun:] for name in trip.names]
    after_commit = names[names.index("commit") :] if "commit" in names else []
    return {"unlease", "ack"} <= set(after_commit)
