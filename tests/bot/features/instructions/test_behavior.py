"""Instructions are stored with the person who set them, and are erased with that person."""

import pytest

from bot.features.instructions.feature import ChatInstructions, Instructions, feature
from memory.memory import Memory
from memory.scopes.fields import read_field
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.memory.learning.scripted import talk

ANN, BEN = 7, 8
GROUP = Scope.of_chat(-5)
TEXT = "Be brief.\nNo | emoji."


def test_instructions_are_read_as_they_were_written() -> None:
    written = Instructions(ANN, 1_000, TEXT)
    assert read_field(written.name, written.stored) == written
    assert Instructions(ANN, 1_000, "").stored == ""


@pytest.mark.parametrize(("person", "left"), [(ANN, ""), (BEN, TEXT)])
async def test_they_go_with_the_person_who_set_them(memory: Memory, person: int, left: str) -> None:
    stored = ChatInstructions(memory.scopes)
    await talk(memory, "one", conversation=GROUP)
    await stored.store(GROUP, TEXT, ANN)
    await memory.forgetting.erase_share(GROUP, person, 2_000_000_000, "receipt")
    assert await stored.read(GROUP) == left


async def test_an_export_and_the_memory_list_have_them(memory: Memory) -> None:
    made = feature(services_of(memory))
    await ChatInstructions(memory.scopes).store(GROUP, "Be brief.", ANN)
    here = await memory.scopes.read(GROUP)
    ([exported], [line]) = (made.exports, made.memory_lines)
    assert await exported(GROUP, here) == {"instructions": "Be brief."}
    assert "Be brief" in line("en", here, here)
