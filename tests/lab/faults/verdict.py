"""Judges a finished day: its figures, and the promises that were broken."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.lab.faults.evidence import Closing, End, Evidence
from tests.lab.faults.scene import Scene
from tests.valkey import opened


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a fault may cause: which ends other than an answer, and to how many turns.

    The turns of the texts in `scene.hit` are not counted.
    """

    closings: frozenset[Closing]
    turns: int


@dataclass(frozen=True, slots=True)
class Verdict:
    """The figures of a day; one text is one update.

    `struck` counts the rounds in which the fault happened. Each of the `updates` was `answered`
    once, or `doubled`, `apologised` for, `undelivered` or `lost`. `in_doubt` counts the doubled
    ones that a crash explains, because a part that may have been sent was sent once more.
    `out_of_order` counts neighboring texts that were remembered or answered in the wrong order.
    `complaints` name the broken promises, one sentence each.
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
    """Return the verdict on a day whose bots have ended; its Redis must still run."""
    async with opened(scene.redis.url) as store:
        found = [await Evidence.collect(scene, store, chat) for chat in scene.day.chats]
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
    """Return texts with several answers: those explained by a part in doubt, and the others."""
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
    """Return complaints about texts with a forbidden end, and about too many of them."""
    closed = {marker: end for marker, end in ends.items() if end in ("apologised", "undelivered")}
    wrong = [
        f"{marker} was {end}" for marker, end in closed.items() if end not in allowance.closings
    ]
    wrong += [
        f"{marker} was not answered, although it was written after the last fault"
        for marker in closed
        if marker in scene.safe
    ]
    spared = closed.keys() - scene.hit
    turns = {each.taken_with(m) for each in found for m in each.said if m in spared}
    if len(turns) > allowance.turns:
        wrong.append(f"{len(turns)} turns were not answered, {allowance.turns} are allowed")
    return wrong
