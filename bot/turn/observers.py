"""What a turn tells its observers: one plain value for each step that is over.

An observer is a callable. It returns at once and changes nothing; it may hand the value to a task
of its own. Observers hear of the steps in order.
"""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartSent:
    """One part was sent, or refused: `outcome` is "sent" or the name of Telegram's error."""

    outcome: str


Event = PartSent
Observer = Callable[[Event], None]
