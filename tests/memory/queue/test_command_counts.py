"""How many commands Redis carries out for a turn, those inside scripts included."""

from collections.abc import Awaitable

from memory.limits.usage import NO_PERSON, BilledCall, BillingSource, Tokens
from memory.memory import Memory
from tests.memory.turns import ANN, HERE, exchange

_MAX_COMMANDS = 39
"""From intake to commit, without wake-ups, usage and learning. It was 110 until November 2026."""


async def _calls(memory: Memory) -> dict[str, int]:
    said = await memory.client.info("commandstats")
    counts = {
        name: dict(each.split("=") for each in text.split(",")) for name, text in said.items()
    }
    return {name: int(each["calls"]) for name, each in counts.items() if "|" not in name}


async def _used(memory: Memory, step: Awaitable[object]) -> dict[str, int]:
    """Return the calls of each command that a step carries out, without those of scripts."""
    before = await _calls(memory)
    await step
    after = await _calls(memory)
    used = {name: calls - before.get(name, 0) for name, calls in after.items()}
    return {name: calls for name, calls in used.items() if calls and name != "cmdstat_info"}


async def test_a_warm_turn_takes_few_commands_and_renews_two_expiries(memory: Memory) -> None:
    """Those two are new keys with each turn: the mailbox and the open turn."""
    for update_id in (1, 2):
        await exchange(memory, update_id)

    async def turn() -> None:
        await exchange(memory, 3)

    used = await _used(memory, turn())
    assert used["cmdstat_expire"] == 2
    assert sum(used.values()) <= _MAX_COMMANDS


async def test_billed_calls_of_one_conversation_are_counted_together(memory: Memory) -> None:
    """Each sum takes a read and a write, however many calls are counted."""

    def call(kind: str, person: int) -> BilledCall:
        return BilledCall(BillingSource(kind, "m"), Tokens(5), person, HERE.tag)

    await memory.usage.count([call(kind, ANN) for kind in ("answer", "internal", "embedding")])
    answers = await _used(memory, memory.usage.count([call("answer", ANN), call("answer", ANN)]))
    learning = [call("internal", NO_PERSON), call("embedding", NO_PERSON)]
    await memory.usage.count([call(each, NO_PERSON) for each in ("internal", "embedding")])
    assert sum(answers.values()) <= 7
    assert sum((await _used(memory, memory.usage.count(learning))).values()) <= 6
