"""The bot's own account, and what all its chats share: the clock, the news, where ids begin.

Ids go on from the clock. A server that starts again, with a bot that remembers the ids of the one
before, thus repeats none, as long as fewer than one a second are given.
"""

from collections.abc import Callable, Iterator
from itertools import count

from bot.playground.bot_api.changes import Changes
from bot.playground.bot_api.values import User


class Account:
    """Whom the token belongs to; `clock` returns Unix seconds.

    Private chats and basic groups number their messages together by `message_ids`, as Telegram does
    for an account; a supergroup or channel counts for itself.
    """

    def __init__(self, bot: User, clock: Callable[[], float], changes: Changes) -> None:
        self.bot = bot
        self.clock = clock
        self.changes = changes
        self.message_ids = self.new_ids()

    def now(self) -> int:
        """Return the time in whole Unix seconds, as messages carry it."""
        return int(self.clock())

    def new_ids(self) -> Iterator[int]:
        """Return a count of its own."""
        return count(self.now() + 1)
