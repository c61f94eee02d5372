"""Which mail a turn takes, and from when on: reckoned anew, beside what the scripts say."""

from collections.abc import Sequence
from typing import Final

from tests.lab.simulator.ledger import Mail

COALESCE_MS: Final = 300
COALESCE_MOST_MS: Final = 1_000
"""How long the newest message waits for another, and the oldest at most."""


def next_turn(waiting: Sequence[Mail]) -> list[int]:
    """Return what a turn takes of all mail, oldest first: one sender's messages, or a command."""
    taken = [waiting[0].update_id]
    for mail in waiting[1:]:
        if not (waiting[0].is_text and mail.is_text and mail.sender == waiting[0].sender):
            break
        taken.append(mail.update_id)
    return taken


def begins_at(waiting: Sequence[Mail]) -> int:
    """Return when a turn of this mail may begin, in Unix milliseconds; commands never wait."""
    if not waiting[0].is_text:
        return 0
    arrived = [mail.arrived_ms for mail in waiting]
    return min(max(arrived) + COALESCE_MS, min(arrived) + COALESCE_MOST_MS)
