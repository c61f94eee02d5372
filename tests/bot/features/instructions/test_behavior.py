"""Instructions are stored with the person who set them, and are erased with that person."""

import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial

import pytest

from bot.features.instructions.feature import ChatInstructions, Instructions, feature
from memory.memory import Memory
from memory.scopes.fields import read_field
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.bot.commands.test_arguments import ASKED
from tests.bot.features.services import services_of
from tests.memory.clients import DyingClient
from tests.memory.conftest import OPTIONS
from tests.memory.learning.scripted import talk
from tests.memory.turns import HERE, clear, forget_ann, put

ANN, BEN = 7, 8
GROUP = Scope.of_chat(-5)
Erase = Callable[[Memory], Awaitable[object]]
TEXT = "Be brief.\nNo | emoji."


def test_instructions_are_read_as_they_were_written() -> None:
    written = Instructions(ANN, 1_000, TEXT)
    assert read_field(written.name, written.stored) == written
    assert Instructions(ANN, 1_000, "").stored == ""


@pytest.mark.parametrize(("person", "left"), [(ANN, ""), (BEN, TEXT)])
async def test_they_go_with_the_person_who_set_them(memory: Memory, person: int, left: str) -> None:
    stored = ChatInstructions(memory.scopes)
    await talk(memory, "one", conversation=GROUP)
    await stored.store(GROUP, Instructions(ANN, 1_000, TEXT))
    await memory.forgetting.erase_share(GROUP, person, 2_000_000_000, "receipt")
    assert await stored.read(GROUP) == left


async def test_an_export_and_the_memory_list_have_them(memory: Memory) -> None:
    made = feature(services_of(memory))
    await ChatInstructions(memory.scopes).store(GROUP, Instructions(ANN, 1_000, "Be brief."))
    here = await memory.scopes.read(GROUP)
    ([exported], [line]) = (made.exports, made.memory_lines)
    assert await exported(GROUP, here) == {"instructions": "Be brief."}
    assert "Be brief" in line("en", here, here)


async def drop(memory: Memory) -> None:
    """Erase the message while it waits, and nothing that is stored already."""
    await memory.mailbox.drop(HERE, lambda _: True)


@pytest.mark.parametrize("erase", [clear, forget_ann, drop])
async def test_they_are_not_kept_if_their_message_is_erased_meanwhile(
    memory: Memory, tokens: TokenCounter, dying: DyingClient, erase: Erase
) -> None:
    """Before any step of storing them, or after the last one."""
    [command] = feature(services_of(Memory(dying, 42, tokens, None, OPTIONS))).commands
    dying.then = partial(erase, memory)
    asked = replace(ASKED, command="instructions", text=TEXT, sent_at=int(time.time()))
    for left in dying.deaths():
        dying.calls_left = 1_000
        await memory.client.call("FLUSHALL")
        await put(memory, asked.update_id)
        dying.calls_left = left
        with suppress(LeaseLost):
            await command.handler(asked, HERE)
        is_stored = dying.calls_left >= 0
        if is_stored:
            await erase(memory)
        kept = TEXT if is_stored and erase is drop else ""
        assert await ChatInstructions(memory.scopes).read(HERE) == kept
