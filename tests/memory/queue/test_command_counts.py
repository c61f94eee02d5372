"""How many commands Redis carries out for a turn, those inside scripts included."""

from memory.memory import Memory
from tests.memory.turns import close, put, take

_MAX_COMMANDS = 67
"""From intake to commit, without wake-ups, usage and learning. It was 110 until November 2026."""


async def _calls(memory: Memory) -> dict[str, int]:
    said = await memory.client.info("commandstats")
    counts = {
        name: dict(each.split("=") for each in text.split(",")) for name, text in said.items()
    }
    return {name: int(each["calls"]) for name, each in counts.items() if "|" not in name}


async def test_a_turn_of_a_warm_conversation_takes_few_commands_and_renews_two_expiries(
    memory: Memory,
) -> None:
    """Those two are new keys with each turn: the mailbox and the open turn."""
    for update_id in (1, 2):
        await put(memory, update_id)
        await close(memory, await take(memory))
    before = await _calls(memory)
    await put(memory, 3)
    await close(memory, await take(memory))
    after = await _calls(memory)
    used = {name: calls - before.get(name, 0) for name, calls in after.items()}
    used.pop("cmdstat_info", None)
    assert used["cmdstat_expire"] == 2
    assert sum(used.values()) <= _MAX_COMMANDS
