"""The bot learns after replies: running state, facts, synopses (A26-A28)."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

import orjson
import pytest

from memory.store.keys import Scope
from tests.acceptance.buttons import press, shown
from tests.acceptance.memory_model import (
    Batch,
    Parts,
    gullible,
    is_batch,
    is_internal,
    main_requests,
    remember_with,
)
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully, wait_until_learned_from
from tests.acceptance.test_memory import let_time_pass
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import Reply, server_error, tool_call

Ask = Callable[[Person, Chat, str], Awaitable[Message]]


UNKNOWN: Parts = {
    **dict.fromkeys(("first_name", "last_name", "discussion_summary"), "unknown"),
    **{name: [] for name in ("key_entities", "open_problems", "current_goals")},
}


async def test_a26_learning_delays_no_reply_keeps_its_order_and_survives_a_stop(rig: Rig) -> None:
    model = remember_with(rig)
    anna, chat = await rig.start_with_anna(learn="state", learn_every_turns=3, learn_after_s=3600)

    def turns(batch: Batch) -> list[str]:
        return batch.said[::2]

    async def say(*numbers: int, ask: Ask = rig.ask) -> None:
        for number in numbers:
            await ask(anna, chat, f"My boat is called Boat-{number}")

    learning = partial(ask_and_learn, rig)
    await say(1, 2, ask=learning)
    assert model.batches == []
    await say(3, ask=learning)
    assert [turns(batch) for batch in model.batches] == [claims(1, 2, 3)]

    slow = asyncio.Event()
    model.read = lambda batch: Reply(orjson.dumps(gullible(batch)).decode(), gate=slow)
    await say(4, 5, ask=learning)
    await say(6)
    await model.batch_about("Boat-6")
    await say(7, 8, ask=partial(ask_fully, rig))
    assert "Boat-3" in main_requests(rig)[-1].memory
    # Not while a turn reads the conversation: its older answer may reach the learner's copy later,
    # and the learner would ask once more before the store refuses what rests on it.
    before = len(rig.bot.log)
    slow.set()
    await wait_until_learned_from(rig, chat, before)
    await say(9)
    await model.batch_about("Boat-9")
    assert [turns(batch) for batch in model.batches[1:]] == [claims(4, 5, 6), claims(7, 8, 9)]
    assert model.batches[2].state["key_entities"] == ["Boat-4", "Boat-5", "Boat-6"]

    await say(10, ask=learning)
    slow.clear()
    await say(11, 12)
    await model.batch_about("Boat-12")
    assert await rig.bot.stop() == 0
    slow.set()
    await rig.start()
    before = len(rig.bot.log)
    await say(13)
    await model.batch_about("Boat-13")
    await rig.bot.wait_until(lambda: any(line.get("calls") for line in rig.bot.log[before:]))
    assert turns(model.batches[-1]) == claims(10, 11, 12, 13)
    assert model.batches[-1].state["key_entities"] == ["Boat-7", "Boat-8", "Boat-9"]
    await say(14, ask=learning)
    assert '["Boat-10", "Boat-11", "Boat-12", "Boat-13"]' in main_requests(rig)[-1].memory


def claims(*numbers: int) -> list[str]:
    return [f"My boat is called Boat-{number}" for number in numbers]


@pytest.mark.parametrize("tool", ["book_berth", "book_and_note"])
async def test_a27_a_domain_field_of_the_state_is_learned_from_a_tool(rig: Rig, tool: str) -> None:
    """The memory model reads it from the tool's result, or the tool writes it itself."""
    model = remember_with(rig)

    def read(batch: Batch) -> Parts:
        state = {"domain": None} | UNKNOWN | batch.state
        for line in batch.lines:
            if '"number":"B-17"' in line.tools:
                state["domain"] = {"number": "B-17", "ship": "Aurora"}
        return {"running_state": state}

    model.read = read
    anna, chat = await rig.start_with_anna(
        learn="state",
        learn_every_turns=1,
        features="tests.acceptance.operator_parts:berths",
        behaviors="tests.acceptance.operator_parts:Harbour",
    )
    call = tool_call(tool, ship="Aurora")
    rig.script.on("berth", Reply(tool_calls=(call,)), "Booked.")
    assert (await ask_and_learn(rig, anna, chat, "Find me a berth")).text == "Booked."
    assert tool in model.batches[0].lines[-1].tools
    await rig.ask(anna, chat, "Where do I lie?")
    assert '"domain": {"number": "B-17", "ship": "Aurora"}' in main_requests(rig)[-1].memory


async def test_a_run_with_kills_after_each_turn_learns_the_same_and_nothing_twice(rig: Rig) -> None:
    model = remember_with(rig)
    await rig.start(learn="state facts synopses", learn_every_turns=1, lease_s=4)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    boats = claims(1, 2, 3)
    for text in (*boats[:2], "/new", f"Anna, {boats[2]}"):
        await ask_and_learn(rig, anna, annas, text)
    for text in (*boats[:2], "/new", f"Ben, {boats[2]}"):
        await ask_fully(rig, ben, bens, text)
        await rig.bot.kill()
        # Leases of killed processes have ended, and the next one looks for what was not learned.
        await let_time_pass(rig, 7_200)
        since = len(rig.bot.log)
        await rig.bot.start()
    await wait_until_learned_from(rig, bens, since)
    told = []
    for person, chat in ((anna, annas), (ben, bens)):
        await model.batch_about(f"{person.user.first_name}, My boat is called Boat-3")
        await ask_and_learn(rig, person, chat, "What of Boat-2?")
        memory = main_requests(rig)[-1].memory
        told.append(re.findall(r"^#\d+ \[[^]]+\] (.*)$", memory, re.MULTILINE))
        assert len(re.findall(r"\] Request: My boat is called Boat-1\.", memory)) == 1
        assert '"discussion_summary": ' in memory
    assert told[0] == told[1] == [f"Their boat is Boat-{n}." for n in (1, 2, 3)]


async def test_a28_sessions_get_synopses_and_related_ones_become_a_narrative(rig: Rig) -> None:
    """The first session matches the question, the second only the first, the third neither."""
    model = remember_with(rig)
    anna, chat = await rig.start_with_anna(learn="synopses", learn_every_turns=1)
    call = tool_call("calculate", expression="2+3")
    rig.script.on("lighthouse", Reply(tool_calls=(call,)), "It took 5 weeks.")
    for text in SESSIONS:
        await ask_and_learn(rig, anna, chat, text)
        await ask_and_learn(rig, anna, chat, "/new")
    assert [batch.said for batch in model.batches] == [
        [SESSIONS[0], "It took 5 weeks."],
        [SESSIONS[1], "All right."],
        [SESSIONS[2], "All right."],
    ]
    assert "calculate" in model.batches[0].lines[-1].tools
    assert "-> 5" in model.batches[0].lines[-1].tools
    assert model.woven == []
    assert "Earlier sessions" not in main_requests(rig)[0].memory

    await rig.bot.kill()
    await rig.end_leases()
    await happened(rig, chat, days_ago=(400, 40, 5))
    await rig.start()
    rig.script.on("Who repaired", "Giuseppe did.")
    await ask_and_learn(rig, anna, chat, "Who repaired the tower of Bari?")
    (woven,) = model.woven
    memories = woven.messages[-1].content
    assert [memories.count(text) for text in SESSIONS] == [1, 1, 0]
    assert "13 months ago" in memories
    assert "40 days" in memories or "5 weeks ago" in memories
    assert "Who repaired the tower of Bari?" in memories
    assert "Earlier sessions:\nOnce upon a time." in main_requests(rig)[-1].memory
    assert chat.replies[-1].text == "Giuseppe did."

    await rig.restart()
    rig.model.faults.add(
        server_error(), times=None, when=lambda ask: is_internal(ask) and not is_batch(ask)
    )
    await rig.ask(anna, chat, "Who repaired the tower of Bari, again?")
    lines = main_requests(rig)[-1].memory.splitlines()
    first, second = (line for line in lines if "] Request: " in line)
    assert f"13 months ago] Request: {SESSIONS[0]}. Done: " in first
    assert f"5 weeks ago] Request: {SESSIONS[1]}. " in second


SESSIONS = (
    "The lighthouse of Bari was repaired by Giuseppe",
    "Giuseppe plays the accordion",
    "Buy oat milk tomorrow",
)


async def happened(rig: Rig, chat: Chat, *, days_ago: Sequence[int]) -> None:
    """Move a chat's sessions with a synopsis this many days into the past."""
    key = rig.keys.scope(Scope.of_chat(chat.id)).records
    entries = await rig.redis("XRANGE", key, "-", "+")
    await rig.redis("DEL", key)
    for (entry, fields), days in zip(entries, days_ago, strict=True):
        record = orjson.loads(fields[b"j"])
        then = {name: record[name] - days * 86_400 for name in ("began_at", "ended_at")}
        written = orjson.dumps(record | then)
        await rig.redis("XADD", key, entry, "k", fields[b"k"], "j", written)


async def test_people_choose_how_facts_are_learned(rig: Rig) -> None:
    """In ask mode a card below a later answer asks, and takes other words."""
    remember_with(rig)
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=1)
    assert (await rig.ask(anna, chat, "/memory ask")).text == sentence("memory.mode_ask")
    await ask_and_learn(rig, anna, chat, "My boat is called Aurora")
    hello = await anna.say(chat, "Hello")
    answer = await chat.wait_for_reply(after=hello)
    card = await chat.wait_for_reply(after=answer)
    assert card.text == sentence("consent.ask", text="Their boat is Aurora.")
    await press(rig, anna, card, "Edit")
    question = await chat.wait_for_reply(after=card)
    reply = await rig.ask(anna, chat, "Sails on the Aurora", reply_to=question)
    assert reply.text == sentence("memory.edited")
    await press(rig, anna, card, sentence("buttons.remember"))
    await shown(rig, card, sentence("consent.kept"))

    assert (await rig.ask(anna, chat, "/memory explicit")).text == sentence("memory.mode_explicit")
    await ask_and_learn(rig, anna, chat, "My cat is called Mephisto")
    listed = await rig.ask(anna, chat, "/memory")
    assert "Sails on the Aurora" in listed.text
    assert "Mephisto" not in listed.text
    assert sentence("memory.mode_explicit") in listed.text
