"""An announcement reaches each chat at most once, wherever a worker dies."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from time import time

import pytest

from bot.commands.notices import set_mute
from bot.features.broadcast.announcements import Announcement
from bot.features.broadcast.sending import Announcing, HalfRate
from bot.reply.parts import Part
from bot.telegram.admission import Admission, Members
from bot.telegram.bot_api import TelegramClient
from bot.telegram.chat import SHORT_WAIT_S, Destination
from bot.telegram.errors import (
    Blocked,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.telegram.rate_limit import SendRateLimiter
from bot.telegram.telegram_chat import TelegramChat
from memory.memory import Memory
from memory.store.errors import StoreUnavailable
from memory.store.keys import Scope
from tests.bot.features.broadcast.test_announcements import announcements_of, key, lose_lease
from tests.bot.features.services import SENTENCES
from tests.bot.telegram.doubles import send_rates_on
from tests.bot.telegram.scripted_api import ScriptedApi, refusal
from tests.conftest import Doomed
from tests.lab.simulator.client import DirectClient
from tests.memory.clients import DyingClient
from tests.memory.turns import put
from tests.quiet_chat import QuietChat
from tests.settings import Settings

ADA = 1
PEOPLE = (11, 12, 13)
LEASE_S = 5.0


class Page(QuietChat):
    """Keeps who got a copy; answers with the next error of the script if there is one.

    It may refuse to show the receipt with `error`.
    """

    error: TelegramError | None = None
    unanswered: TelegramError | None = None  # raised when a message of its own was sent

    def __init__(self, *errors: TelegramError | None) -> None:
        super().__init__()
        self.errors = list(errors)
        self.got: list[int] = []
        self.copied = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.wait_s = 0.0
        self.waiting = asyncio.Event()

    async def waits(self, chat_id: int, max_wait_s: float = 20) -> AsyncIterator[float]:
        self.permits.append((chat_id, max_wait_s))
        self.waiting.set()
        yield self.wait_s

    async def edit(self, chat_id: int, message_id: int, part: Part, timeout_s: float = 15) -> None:
        if self.error:
            raise self.error
        await super().edit(chat_id, message_id, part, timeout_s)

    async def send(self, to: Destination, part: Part, timeout_s: float = 15) -> int:
        if not part.copy_of:
            await super().send(to, part, timeout_s)
            if self.unanswered:
                raise self.unanswered
            return 100
        assert (part.copy_of, timeout_s) == ((ADA, 70), LEASE_S / 2)
        assert part.buttons[0][0].callback_data == "mute:"
        error = self.errors.pop(0) if self.errors else None
        if error is None or isinstance(error, OutcomeUnknown):
            self.got.append(to.chat_id)
        self.copied.set()
        await self.may_answer.wait()
        if error:
            raise error
        return 100


def worker(memory: Memory, chat: Page) -> Announcing:
    """Return a worker of a bot that 13 may not use."""
    settings = Settings(allowed_user_ids="1,11,12", lease_s=LEASE_S)
    admission = Admission(settings, Members(memory.store))
    return Announcing(announcements_of(memory), chat, HalfRate(chat, 0), admission, SENTENCES)


async def announce(memory: Memory, id_: str = "one") -> None:
    """Let everybody write, and confirm an announcement of Ada's."""
    for person in (ADA, *PEOPLE):
        await put(memory, int(time() * 1000) + person, Scope.of_chat(person), sender=person)
    assert await announcements_of(memory).start(Announcement(id_, ADA, 70, 71, "en"))


async def end_waits(memory: Memory) -> None:
    """Let the lease of a dead worker end, and everything be due."""
    await lose_lease(memory)
    if await announcements_of(memory).is_open():
        await memory.client.call("HSET", key(memory, "job"), "due", 0)
        for chat in await memory.client.call("ZRANGE", key(memory, "left"), 0, -1):
            await memory.client.call("ZADD", key(memory, "left"), 0, chat)


def receipt(why: str = "done", **counts: int) -> str:
    none = dict.fromkeys(("sent", "muted", "gone", "refused", "unknown", "left"), 0)
    (part,) = SENTENCES.say(
        "en", f"broadcast.{why}", "broadcast.counts", **{"total": 2, **none, **counts}
    )
    return part.text


async def test_wherever_a_worker_dies_each_chat_is_asked_once_and_one_at_most_is_in_doubt(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    doubts = []
    for steps in dying.deaths():
        await announce(memory, str(steps))
        run = await announcements_of(memory).take(LEASE_S)
        assert run
        await run.collect(lambda chat: chat in (11, 12))  # the suite has no time for its many steps
        await run.lease.release()
        chat = Page()
        with suppress(StoreUnavailable):
            await worker(doomed(), chat).check()
        await end_waits(memory)
        await worker(memory, chat).check()
        assert sorted(chat.got) == [11, 12]
        is_in_doubt = chat.edited[-1][2].text == receipt(sent=1, unknown=1)
        assert is_in_doubt or chat.edited[-1][2].text == receipt(sent=2)
        doubts.append(is_in_doubt)
    assert doubts.count(True) == 2
    assert not doubts[-1]


async def test_each_error_of_telegram_has_its_effect(memory: Memory) -> None:
    """Blocked: gone. Unknown: not repeated. A flood or no connection: everything waits.

    13 may not use the bot, and Ada has the message: two chats are left.
    """
    chat = Page(FloodWait(30), Unreachable(), Blocked(), OutcomeUnknown())
    await announce(memory)
    announcing = worker(memory, chat)
    for waiting in (True, True, False):
        await announcing.check()
        assert await announcements_of(memory).is_open() == waiting
        seen = len(chat.errors)
        await announcing.check()  # nothing is tried before the time
        assert len(chat.errors) == seen
        await end_waits(memory)
    assert len(chat.got) == 1
    assert chat.edited[-1][:2] == (ADA, 71)
    assert chat.edited[-1][2].text == receipt(gone=1, unknown=1)


async def test_the_long_ban_of_one_chat_delays_the_others_a_few_seconds(memory: Memory) -> None:
    chat = Page(FloodWait(3_600))
    await announce(memory)
    await worker(memory, chat).check()
    assert chat.got == []
    await memory.client.call("HSET", key(memory, "job"), "due", 0)
    await worker(memory, chat).check()
    assert len(chat.got) == 1
    assert await announcements_of(memory).is_open()
    await end_waits(memory)
    await worker(memory, chat).check()
    assert sorted(chat.got) == [11, 12]
    assert chat.edited[-1][2].text == receipt(sent=2)


async def test_a_lost_message_ends_the_announcement_a_refused_chat_does_not(memory: Memory) -> None:
    chat = Page(Refused("other"), Refused("message_gone"))
    await announce(memory)
    await worker(memory, chat).check()
    assert chat.edited[-1][2].text == receipt("source_gone", refused=1, left=1)


async def test_a_person_who_mutes_meanwhile_gets_nothing_and_a_stop_shows_what_was_done(
    memory: Memory,
) -> None:
    chat = Page()
    await announce(memory)
    chat.may_answer.clear()
    working = asyncio.create_task(worker(memory, chat).check())
    await chat.copied.wait()
    (other,) = {11, 12} - set(chat.got)
    await set_mute(memory.scopes, other, 5, is_muted=True)
    chat.may_answer.set()
    await working
    assert chat.edited[-1][2].text == receipt(sent=1, muted=1)
    await set_mute(memory.scopes, other, 6, is_muted=False)
    await announce(memory, "two")
    await announcements_of(memory).stop("two")
    await worker(memory, chat).check()
    assert chat.edited[-1][2].text == receipt("stopped", left=2)


async def test_a_stopping_worker_stores_what_was_sent_and_returns_the_rest(memory: Memory) -> None:
    chat = Page()
    await announce(memory)
    chat.may_answer.clear()
    working = asyncio.create_task(worker(memory, chat).check())
    await chat.copied.wait()
    working.cancel()
    chat.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await working
    assert len(chat.got) == 1
    chat.waiting.clear()
    chat.wait_s = 60
    working = asyncio.create_task(worker(memory, chat).check())
    await chat.waiting.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working
    chat.wait_s = 0
    await worker(memory, chat).check()
    assert sorted(chat.got) == [11, 12]
    assert chat.edited[-1][2].text == receipt(sent=2)


async def test_a_worker_also_stops_if_it_can_store_nothing_more(
    memory: Memory, dying: DyingClient, doomed: Doomed
) -> None:
    await announce(memory)
    dying.calls_left = 1_000
    chat = Page()
    chat.may_answer.clear()
    working = asyncio.create_task(worker(doomed(), chat).check())
    await chat.copied.wait()
    dying.calls_left = 0
    working.cancel()
    chat.may_answer.set()
    with pytest.raises(asyncio.CancelledError):
        await working


@pytest.mark.parametrize("error", [None, OutcomeUnknown()])
async def test_the_receipt_comes_in_a_message_of_its_own_or_later(
    memory: Memory, error: TelegramError | None
) -> None:
    chat = Page()
    chat.error, chat.unanswered = FloodWait(5), error
    await announce(memory)
    await worker(memory, chat).check()
    chat.error = None
    await announcements_of(memory).stop("one")  # nothing is left, so this does not end the wait
    await worker(memory, chat).check()
    assert await announcements_of(memory).is_open()
    await end_waits(memory)
    chat.error = Refused("message_gone")
    await worker(memory, chat).check()
    [(to, part)] = chat.sent
    assert (to.chat_id, part.text) == (ADA, receipt("stopped", sent=2))
    assert chat.permits[-1] == (ADA, SHORT_WAIT_S)  # else its lease could end
    assert not await announcements_of(memory).is_open()


async def test_copies_wait_for_half_of_the_rate_and_for_the_ban_of_a_chat(
    client: TelegramClient, api: ScriptedApi
) -> None:
    now = [1_000.0]
    limiter = SendRateLimiter(10, send_rates_on(DirectClient(lambda: now[0])), lambda: now[0])
    chat = TelegramChat(client, limiter)
    permits = HalfRate(chat, 10, clock=lambda: now[0])
    waited = 0.0

    async def wait(chat_id: int) -> float:
        begun = now[0]
        async for wait_s in permits.waits(chat_id):
            now[0] += wait_s
        return now[0] - begun

    for chat_id in range(1, 21):
        waited += await wait(chat_id)
    assert waited == pytest.approx(19 / 5)
    api.script(refusal(429, "Too Many Requests: retry after 30", retry_after=30))
    with pytest.raises(FloodWait):
        await chat.send(Destination(11), Part("", copy_of=(5, 70)))
    with pytest.raises(FloodWait):
        await wait(11)
