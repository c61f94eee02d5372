"""Judges a finished day: its figures, and what breaks a promise."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from memory.store.client import RedisClient
from tests.lab.faults.evidence import Closing, End, Evidence
from tests.lab.faults.scene import Scene


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a fault may cause: ends beside an answer, to so many turns beside `scene.hit`."""

    closings: frozenset[Closing]
    turns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures of a day; one text is one update.

    The fault `struck` so often; a round in which its moment did not come is not counted.
    Each of the `updates` was `answered` once, or `doubled`, `apologised` for, `undelivered` or
    `lost`. `in_doubt` are those among the doubled ones that a crash explains: a part that may have
    been sent was sent once more. `out_of_order` counts neighbours that were remembered or answered
    the other way round. `complaints` say what breaks a promise, one sentence each.
    """

    struck: int
    updates: int
    answered: int
    doubled: int
    in_doubt: int
    apologised: int
    undelivered: int
    lost: int
    out_of_order: int
    complaints: tuple[str, ...]


async def judge(scene: Scene, allowance: Allowance) -> Verdict:
    """Return the verdict on a day that is over; its bots have ended, its Redis runs."""
    store = await RedisClient.open(scene.redis.url)
    try:
        found = [await Evidence.gather(scene, store, chat) for chat in scene.day.chats]
    finally:
        await store.close()
    ends = {marker: each.end_of(marker) for each in found for marker in each.said}
    explained, unexplained = _doubled(found, scene.doubts)
    doubled = explained | unexplained
    swaps = [swap for each in found for swap in each.swaps()]
    counts = Counter(end for marker, end in ends.items() if marker not in doubled)
    complaints = [
        *(f"it never struck at the moment {name!r}" for name in scene.missed - scene.met),
        *(f"{marker} was lost" for marker, end in ends.items() if end == "lost"),
        *(f"{marker} was answered more than once" for marker in sorted(unexplained)),
        *(f"{first} came before {second}" for first, second in swaps),
        *_excess(scene, found, ends, allowance),
        *(oddity for each in found for oddity in each.oddities()),
    ]
    return Verdict(
        struck=scene.struck,
        updates=len(scene.day.lines),
        answered=counts["answered"],
        doubled=len(doubled),
        in_doubt=len(explained),
        apologised=counts["apologised"],
        undelivered=counts["undelivered"],
        lost=counts["lost"],
        out_of_order=len(swaps),
        complaints=tuple(complaints),
    )


def _doubled(
    found: Sequence[Evidence], doubts: "Counter[tuple[int, str]]"
) -> tuple[set[str], set[str]]:
    """Return the texts answered more than once: those that a doubt explains, and the others."""
    explained, unexplained = set[str](), set[str]()
    for each in found:
        copies = each.copies
        too_many = copies - doubts
        for marker in each.said:
            if each.has_two_answers(marker) or any(marker in text for _, text in too_many):
                unexplained.add(marker)
            elif any(marker in text for _, text in copies):
                explained.add(marker)
    return explained, unexplained


def _excess(
    scene: Scene, found: Sequence[Evidence], ends: Mapping[str, End], allowance: Allowance
) -> Sequence[str]:
    """Say which texts ended as they may not, or that too many did."""
    closed = {marker: end for marker, end in ends.items() if end in ("apologised", "undelivered")}
    wrong = [
        f"{marker} was {end}" for marker, end in closed.items() if end not in allowance.closings
    ]
    wrong += [
        f"{marker} was not answered, said when all was well"
        for marker in closed
        if marker in scene.safe
    ]
    spared = closed.keys() - scene.hit
    turns = {each.taken_with(m) for each in found for m in each.said if m in spared}
    if len(turns) > allowance.turns:
        wrong.append(f"{len(turns)} turns were not answered, {allowance.turns} may be so")
    return wrong
