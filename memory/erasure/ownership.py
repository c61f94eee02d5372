"""Who may change what is remembered: the one rule that tools, buttons, commands and files follow.

In private everything is one's own. In a group people change what rests on their own words alone,
and its administrators change everything.
"""

from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass

IsAdmin = Callable[[], Awaitable[bool]]
"""Asks whether somebody administers the group; called only when the answer depends on it."""


async def nobody() -> bool:
    """Say that somebody is no administrator."""
    return False


@dataclass(frozen=True, slots=True)
class Asker:
    """Who wants something changed, and where."""

    sender_id: int
    is_group: bool
    is_admin: IsAdmin = nobody


def is_first_party(sender_id: int, senders: Iterable[int]) -> bool:
    """Say whether a memory rests on one person's words alone; `senders` said what it rests on."""
    return sender_id != 0 and set(senders) == {sender_id}


async def may_change(asker: Asker, senders: Iterable[int] = ()) -> bool:
    """Say whether somebody may change, erase or take away a memory.

    `senders` said what it rests on. None are named for what rests on everybody's words: a summary,
    a switch, the whole conversation.
    """
    return not asker.is_group or is_first_party(asker.sender_id, senders) or await asker.is_admin()
