"""The form of every request to the model, turn after turn."""

from itertools import pairwise
from pathlib import Path

import orjson

from bot.features.instructions.feature import ChatInstructions
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said, say_at_once
from tests.servers.model_api import ChatRequest


async def test_the_longest_message_and_a_burst_reach_the_model_whole(webhook_rig: Rig) -> None:
    rig = webhook_rig
    await rig.start(coalesce_s=0)
    anna, chat = rig.anna()
    longest = ("word 🧭 " * 512)[:3583] + "!"
    assert len(longest.encode("utf-16-le")) == 2 * 4096
    await rig.ask(anna, chat, longest)
    assert said(rig.requests[-1])[1:] == [("user", longest)]

    burst = ["First this,", "then that.", "And finally?"]
    await say_at_once(rig, anna, chat, burst)
    assert said(rig.requests[-1])[-1] == ("user", "\n".join(burst))
    assert len(rig.requests) == len(chat.replies) == 3

    await rig.ask(anna, chat, "Go on")
    users = [text for role, text in said(rig.requests[-1]) if role == "user"]
    assert users[0] == longest
    assert users[2:] == ["\n".join(burst), "Go on"]
    assert rig.model.log.refusals == []


async def test_a_system_prompt_file_replaces_the_persona(webhook_rig: Rig, tmp_path: Path) -> None:
    rig = webhook_rig
    persona = tmp_path / "persona.md"
    text = "You are Käpt'n Blaubär.\n\n<memory> is yours."
    persona.write_text(f"\ufeff{text}\n", "utf-8")
    await rig.start(system_prompt_file=persona, documents="off")
    anna, chat = rig.anna()
    await rig.ask(anna, chat, "Ahoy")
    (role, front), question = said(rig.requests[-1])
    ours = f"You are Käpt'n Blaubär.\n\n<memory> is yours.\n\n{ChatInstructions.instructions}"
    assert (role, front.startswith(ours), question) == ("system", True, ("user", "Ahoy"))
    assert "Ricordo" not in front
    assert rig.model.log.refusals == []


async def test_the_front_of_the_prompt_stays_byte_identical_until_a_block_leaves_the_window(
    webhook_rig: Rig,
) -> None:
    """In a window of 16 a block is two exchanges: every second prompt starts like the last one."""
    rig = webhook_rig
    await rig.start(window_messages=16)
    anna, chat = rig.anna()
    for turn in range(1, 15):
        await rig.ask(anna, chat, f"Boat number {turn}")
        await rig.wait_until_learned(2 * turn)
    changed = [
        turn
        for turn, (last, this) in enumerate(pairwise(rig.requests), start=2)
        if not wire(this, len(this.messages)).startswith(wire(last, len(last.messages) - 1))
    ]
    assert changed == [10, 12, 14]
    windows = [len(request.messages) - 2 for request in rig.requests]
    assert windows == [*range(0, 18, 2), 14, 16, 14, 16, 14]
    assert [bool(request.memory) for request in rig.requests] == [False] * 9 + [True] * 5
    assert rig.model.log.refusals == []


def wire(request: ChatRequest, messages: int) -> bytes:
    """Return the tools and the first messages of a request as they were sent."""
    sent = request.raw["messages"]
    assert isinstance(sent, list)
    return b"".join(map(orjson.dumps, [request.raw["tools"], *sent[:messages]]))
