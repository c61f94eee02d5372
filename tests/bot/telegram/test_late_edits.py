"""An edit that a ban held up is made after the ban, once: the newest, and nothing erased."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from bot.commands import immediate
from bot.commands.immediate import Buttons, LateEdits
from bot.reply.parts import Part
from bot.telegram.errors import FloodWait, Unreachable
from bot.telegram.telegram_chat import TelegramChat
from memory.memory import Memory
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.bot.telegram.scripted_api import Reply, ScriptedApi, refusal
from tests.memory.turns import ANNS, GROUP, HERE

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
async def edits(chat: TelegramChat, memory: Memory, bans: Bans) -> AsyncIterator[LateEdits]:
    buttons = Buttons({}, memory, chat, SENTENCES)
    buttons._late_edits._pause = bans.wait
    yield buttons._late_edits
    await buttons.stop()
    assert buttons._late_edits._waiting == {}


async def ended(edits: LateEdits) -> None:
    """Wait until no edit is waiting."""
    await asyncio.wait(edits._waiting.values(), timeout=60)
    assert edits._waiting == {}


def texts(api: ScriptedApi) -> list[str]:
    return [call.parameters["text"] for call in api.named("editMessageText")]


async def test_an_edit_waits_for_a_ban_to_end_and_for_no_other(
    api: ScriptedApi, edits: LateEdits, bans: Bans
) -> None:
    api.script(ban(17), ban(3), ban(301))
    await edits.edit(CHAT, MESSAGE, Part("done"))
    assert texts(api) == ["done"]
    bans.over.set()
    await ended(edits)
    assert (texts(api), bans.waited_s) == (["done"] * 2, [17])
    with pytest.raises(FloodWait):
        await edits.edit(CHAT, MESSAGE, Part("done"))


@pytest.mark.parametrize("first", [HERE, GROUP], ids=str)
@pytest.mark.parametrize("later", [HERE, ANNS, GROUP], ids=str)
async def test_what_was_erased_in_the_chat_meanwhile_is_not_shown(
    api: ScriptedApi, chat: TelegramChat, memory: Memory, first: Scope, later: Scope
) -> None:
    async def edit(*what: Any) -> None:
        await memory.store.tell_erased(first)
        await chat.edit(*what)

    async def erase(seconds: float) -> None:
        await memory.store.tell_erased(later)
        if seconds > 60:
            await memory.client.call("DEL", memory.keys.erased)  # it has expired

    await memory.store.tell_erased(HERE)
    api.script(ban(200))
    edits = LateEdits(edit, memory.store, erase)
    await edits.edit(HERE.chat_id, MESSAGE, Part("done"))
    await ended(edits)
    assert len(texts(api)) == (2 if first == later == GROUP else 1)


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
    api: ScriptedApi, chat: TelegramChat, memory: Memory, bans: Bans
) -> None:
    async def edit(chat_id: int, message_id: int, part: Part) -> None:
        if bans.waited_s:
            raise Unreachable("away")
        await chat.edit(chat_id, message_id, part)

    edits = LateEdits(edit, memory.store, bans.wait)
    api.script(ban(17))
    await edits.edit(CHAT, MESSAGE, Part("done"))
    bans.over.set()
    await ended(edits)
    with pytest.raises(Unreachable):
        await edits.edit(CHAT, MESSAGE, Part("done"))
