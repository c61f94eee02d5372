"""An edit that a ban held up is made after the ban: only the newest one, and within bounds."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import pytest

from bot.commands import immediate
from bot.commands.immediate import LateEdits
from bot.reply.parts import Part
from bot.telegram.errors import FloodWait, Unreachable
from bot.telegram.telegram_chat import TelegramChat
from tests.bot.telegram.scripted_api import Reply, ScriptedApi, refusal

CHAT, MESSAGE = 7, 9


def ban(seconds: int) -> Reply:
    return refusal(429, "Too Many Requests", retry_after=seconds)


@dataclass
class Bans:
    """Bans that end when the test sets `over`."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    waited_s: list[float] = field(default_factory=list)

    async def wait(self, seconds: float) -> None:
        self.waited_s.append(seconds)
        await self.over.wait()


@pytest.fixture
def bans() -> Bans:
    return Bans()


@pytest.fixture
async def edits(chat: TelegramChat, bans: Bans) -> AsyncIterator[LateEdits]:
    late = LateEdits(chat.edit, bans.wait)
    yield late
    await late.stop()


async def ended(edits: LateEdits) -> None:
    """Wait until no edit is waiting."""
    await asyncio.wait(edits._waiting.values(), timeout=60)
    assert edits._waiting == {}


def texts(api: ScriptedApi) -> list[str]:
    return [call.parameters["text"] for call in api.named("editMessageText")]


async def test_edits_wait_for_bans_to_end(api: ScriptedApi, edits: LateEdits, bans: Bans) -> None:
    api.script(ban(17), ban(3))
    await edits.edit(CHAT, MESSAGE, Part("done"))
    assert texts(api) == ["done"]
    bans.over.set()
    await ended(edits)
    assert (texts(api), bans.waited_s) == (["done"] * 3, [17, 3])


async def test_a_newer_edit_of_a_message_replaces_one_that_waits(
    api: ScriptedApi, edits: LateEdits, bans: Bans
) -> None:
    api.script(ban(17), ban(17), ban(17))
    await edits.edit(CHAT, MESSAGE, Part("page 2"))
    await edits.edit(CHAT, MESSAGE + 1, Part("another message"))
    await edits.edit(CHAT, MESSAGE, Part("page 3"))
    bans.over.set()
    await ended(edits)
    assert sorted(texts(api)[3:]) == ["another message", "page 3"]


@pytest.mark.parametrize(
    ("bans_s", "waited_s"), [([1] * 9, [1] * 5), ([301], []), ([200, 200], [200])], ids=str
)
async def test_an_edit_is_tried_at_most_five_times_within_five_minutes(
    api: ScriptedApi, edits: LateEdits, bans: Bans, bans_s: list[int], waited_s: list[float]
) -> None:
    api.script(*map(ban, bans_s))
    bans.over.set()
    await edits.edit(CHAT, MESSAGE, Part("done"))
    await ended(edits)
    assert (bans.waited_s, len(texts(api))) == (waited_s, 1 + len(waited_s))


async def test_a_bounded_number_of_edits_wait(
    api: ScriptedApi, edits: LateEdits, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(immediate, "_MAX_WAITING", 2)
    api.script(*[ban(17)] * 3)
    for message in (1, 2):
        await edits.edit(CHAT, message, Part("done"))
    with pytest.raises(FloodWait):
        await edits.edit(CHAT, 3, Part("done"))


async def test_another_error_than_a_ban_is_raised_at_once_and_ends_the_waiting(
    api: ScriptedApi, chat: TelegramChat, bans: Bans
) -> None:
    async def edit(chat_id: int, message_id: int, part: Part) -> None:
        if bans.waited_s:
            raise Unreachable("away")
        await chat.edit(chat_id, message_id, part)

    edits = LateEdits(edit, bans.wait)
    api.script(ban(17))
    await edits.edit(CHAT, MESSAGE, Part("done"))
    bans.over.set()
    await ended(edits)
    with pytest.raises(Unreachable):
        await edits.edit(CHAT, MESSAGE, Part("done"))


async def test_stopping_drops_the_edits_that_wait(api: ScriptedApi, edits: LateEdits) -> None:
    api.script(ban(17))
    await edits.edit(CHAT, MESSAGE, Part("done"))
    await edits.stop()
    assert (edits._waiting, texts(api)) == ({}, ["done"])
