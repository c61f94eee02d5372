"""Operators are told in private, each in their language; if nobody was reached, again later."""

from collections.abc import AsyncIterator, Mapping

import pytest

from bot.commands.access import Operators
from bot.commands.notices import OperatorNotices, figures
from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.errors import Blocked, TelegramError, Unreachable
from memory.limits.capacity import FillLevel
from memory.memory import Memory
from tests.bot.features.services import SENTENCES
from tests.quiet_chat import QuietChat
from tests.settings import Settings

FULL_SOON = FillLevel(used=21 * 2**20, limit=25 * 2**20)
NOBODY: Mapping[int, TelegramError] = {}


class Telegram(QuietChat):
    """Keeps what each person was sent; fails for some."""

    def __init__(self, failures: Mapping[int, TelegramError]) -> None:
        super().__init__()
        self.waited: list[int] = []
        self._failures = failures

    async def waits(self, chat_id: int, max_wait_s: float = 20) -> AsyncIterator[float]:
        del max_wait_s
        yield 0
        self.waited.append(chat_id)

    async def send(self, to: Destination, part: Part, timeout_s: float = 0) -> int:
        if to.chat_id in self._failures:
            raise self._failures[to.chat_id]
        assert to.chat_id in self.waited
        return await super().send(to, part, timeout_s)


async def told(
    memory: Memory, failures: Mapping[int, TelegramError], *admins: int
) -> tuple[bool, dict[int, str]]:
    await memory.client.call("HSET", memory.keys.admins, 2, "de-AT")
    telegram = Telegram(failures)
    notices = OperatorNotices(
        Operators(memory.store, Settings(admin_user_ids=frozenset(admins))), telegram, SENTENCES
    )
    is_told = await notices.say("notices.filling", figures(FULL_SOON))
    return is_told, {to.chat_id: part.text for to, part in telegram.sent}


async def test_each_operator_is_told_in_their_language(memory: Memory) -> None:
    is_told, sent = await told(memory, NOBODY, 1, 2)
    assert is_told
    for admin, lines in {
        1: ("My memory is filling up", "84 % full: 21 of 25 MB"),
        2: ("Mein Gedächtnis füllt sich", "21 von 25 MB"),
    }.items():
        for line in lines:
            assert line in sent[admin]


@pytest.mark.parametrize(
    ("failures", "admins", "is_told", "reached"),
    [
        ({1: Unreachable("away")}, (1, 2), True, [2]),
        ({1: Unreachable("away")}, (1,), False, []),
        ({1: Blocked("blocked")}, (1,), True, []),  # who is not told again
        (NOBODY, (), True, []),
    ],
    ids=["one was reached", "nobody was reached", "blocked", "no operators"],
)
async def test_a_notice_is_done_unless_nobody_could_be_reached(
    memory: Memory,
    failures: Mapping[int, TelegramError],
    admins: tuple[int, ...],
    *,
    is_told: bool,
    reached: list[int],
) -> None:
    done, sent = await told(memory, failures, *admins)
    assert (done, list(sent)) == (is_told, reached)
