"""A reasoning model answers like any other, and its reasoning is stored nowhere."""

from tests.acceptance.rig import Rig
from tests.servers.model_api import Reply, tool_call
from tests.stored import everything_stored

THOUGHTS = "Perhaps they mean the harbour at Kirkwall? " * 30


async def test_reasoning_is_returned_within_a_turn_and_never_stored(
    webhook_rig: Rig, valkey: str
) -> None:
    rig = webhook_rig
    await rig.start(openai_api="responses", learn="synopses", learn_every_turns=1)
    anna, chat = rig.anna()
    for number in (1, 2):
        call = tool_call("calculate", expression=f"{number} + 1")
        rig.script.then(Reply("", (call,), thoughts=THOUGHTS), f"Sum {number}.")
        assert (await rig.ask(anna, chat, f"Do sum {number}")).text == f"Sum {number}."
    sent = [str(request.raw["input"]).count("encrypted_content") for request in rig.requests]
    assert [count for request, count in zip(rig.requests, sent, strict=True) if request.tools] == [
        *(0, 1),
        *(0, 1),
    ]
    stored = await everything_stored(valkey)
    assert stored
    assert b"gAAAAA" not in stored
    assert "gAAAAA" not in "".join(rig.bot.raw)
    assert rig.model.log.refusals == []


async def test_a_conversation_is_sent_as_a_hash_and_a_person_only_if_wanted(rig: Rig) -> None:
    await rig.start(openai_safety_identifier="on", openai_verbosity="low", lease_s=4)
    anna, annas = rig.anna()
    ben, bens = rig.ben()
    for person, chat in ((anna, annas), (anna, annas), (ben, bens)):
        await rig.ask(person, chat, "Hello")
    for name in ("prompt_cache_key", "safety_identifier"):
        first, second, other = (str(request.raw[name]) for request in rig.requests)
        assert first == second != other
        assert str(anna.id) not in first
        assert len(first) == 32
    await rig.bot.kill()
    await rig.start(openai_safety_identifier="off")
    await rig.ask(anna, annas, "Hello again")
    assert "safety_identifier" not in rig.requests[-1].raw
    assert rig.requests[-1].raw["prompt_cache_key"] == rig.requests[0].raw["prompt_cache_key"]
    assert rig.model.log.refusals == []
