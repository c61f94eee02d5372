"""The bot's account, and what all its chats share: the clock, ids, and who waits for a change."""

import asyncio
from collections.abc import Callable, Iterator
from itertools import count
from typing import TypeVar

from tests.servers.bot_api.values import User

T = TypeVar("T")


class Changes:
    """Lets `until` wait for changes without polling."""

    def __init__(self) -> None:
        self._condition = asyncio.Condition()

    async def tell(self) -> None:
        async with self._condition:
            self._condition.notify_all()

    async def until(self, found: Callable[[], T | None], timeout_s: float | None = None) -> T:
        """Return the result of `found` once it is true; `found` is called now and at each change.

        Raise `TimeoutError` if that takes longer than `timeout_s`.
        """
        async with asyncio.timeout(timeout_s), self._condition:
            while not (value := found()):
                await self._condition.wait()
            return value


class Account:
    """The account of the bot; `clock` returns Unix seconds.

    Ids start at the clock. So a server that starts again repeats no id that its bot remembers, as
    long as it gives fewer than one a second. Private chats and basic groups share `message_ids`, as
    in Telegram; a supergroup or channel counts for itself.
    """

    def __init__(self, bot: User, clock: Callable[[], float], changes: Changes) -> None:
        self.bot = bot
        self.clock = clock
        self.changes = changes
        self.message_ids = self.new_ids()

    def now(self) -> int:
        return int(self.clock())

    def new_ids(self) -> Iterator[int]:
        return count(self.now() + 1)
