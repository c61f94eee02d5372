"""A reply arrives whole and once, or does not count as said (A17, A18)."""

import asyncio

from memory.store.client import RedisClient
from memory.store.keys import Scope
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.bot_api import (
    Chat,
    DropConnection,
    FloodWait,
    Hang,
    Refuse,
    SentThenDrop,
    SlowAnswer,
    utf16_length,
)
from tests.servers.model_api import Reply

Doubts = tuple[tuple[DropConnection | SentThenDrop | SlowAnswer, int], ...]

SEND = "sendMessage"
CODE = "\n".join(f"print({number!r}, '🧭 {number * number}')" for number in range(300))
TALK = " ".join(f"Word {number} of many 👩‍👩‍👧‍👦🇩🇪." for number in range(140))


async def closed(rig: Rig, number: int, event: str = "turn closed") -> dict[str, object]:
    """Return the log line of the `number`-th closed turn, or of another event."""

    def lines() -> list[dict[str, object]]:
        return [line for line in rig.bot.log if line["event"] == event]

    await rig.bot.wait_until(lambda: len(lines()) >= number)
    return lines()[number - 1]


async def test_a17_long_code_comes_as_a_file_through_a_crash_and_is_kept_whole_in_the_history(
    rig: Rig,
) -> None:
    anna, chat = await rig.start_with_anna(window_tokens=20_000, prompt_tokens=40_000)
    long = f"{TALK}\n\n```python\n{CODE}\n```\n\n{TALK}"
    assert len(long) > 9_000
    rig.script.then(long, "**Bold** move", "Fine.")
    silence = rig.telegram.faults.add(Hang(30), method="sendDocument")
    await anna.say(chat, "Talk")
    await rig.telegram.wait_for(lambda: silence.left == 0)
    await rig.restart()
    line = await closed(rig, 1)
    *parts, code = chat.replies
    assert line["parts"] == len(chat.replies) == 4
    assert max(utf16_length(part.text) for part in parts) <= 4096
    shown = f"{TALK} 📎 code.py ({len(CODE.splitlines())} lines) {TALK}"
    assert "\n".join(part.text for part in parts).split() == shown.split()
    assert code.file.name == "code.py"
    assert code.file.content.decode() == f"{CODE}\n"
    assert len(rig.requests) == 1

    rig.telegram.faults.add(
        Refuse(400, "Bad Request: can't parse entities: Unsupported start tag"), method=SEND
    )
    reply = await rig.ask(anna, chat, "And?")
    assert (reply.text, reply.entities) == ("Bold move", ())

    await rig.ask(anna, chat, "Good")
    assert said(rig.requests[-1])[1:] == [
        ("user", "Talk"),
        ("assistant", long),
        ("user", "And?"),
        ("assistant", "**Bold** move"),
        ("user", "Good"),
    ]
    assert rig.model.log.refusals == []


async def test_a18_a_long_flood_wait_parks_only_its_own_turn(rig: Rig, store: RedisClient) -> None:
    anna, annas = await rig.start_with_anna()
    ben, bens = rig.ben()
    rig.telegram.faults.add(FloodWait(25), method=SEND, chat=annas)
    await anna.say(annas, "Hello")
    assert (await rig.bot.wait_for_log("turn parked"))["pause_s"] == 25
    await anna.say(annas, "Still there?")
    await rig.ask(ben, bens, "Hello")
    assert annas.replies == []

    await let_time_pass(store, rig, annas)
    await closed(rig, 3)
    assert [reply.text for reply in annas.replies] == ["All right."] * 2
    asked = [request.asked for request in rig.requests]
    assert sorted(asked) == ["Hello", "Hello", "Still there?"]
    assert asked[-1] == "Still there?"


async def let_time_pass(store: RedisClient, rig: Rig, chat: Chat) -> None:
    """Make the parked turn of a chat due now."""
    keys, conversation = rig.keys, Scope.of_chat(chat.id)
    due_ms = int(await store.call("ZSCORE", keys.due, conversation.tag))
    turn = keys.scope(conversation).turn
    # The server's clock decides when the turn is due.
    assert abs(int(await store.call("HGET", turn, "due")) - due_ms) < 1_000
    past_ms = due_ms - 60_000
    await store.call("HSET", turn, "due", past_ms)
    await store.call("ZADD", keys.due, past_ms, conversation.tag)


async def test_a18_a_person_who_blocked_the_bot_is_sent_nothing_and_the_reply_counts_as_unsaid(
    rig: Rig,
) -> None:
    anna, chat = await rig.start_with_anna()
    gate = asyncio.Event()
    rig.script.then(Reply("You will not hear this.", gate=gate))
    await rig.say_until_asked(anna, chat, "Hello")
    await anna.block()
    gate.set()
    assert (await closed(rig, 1))["outcome"] == "undeliverable"
    assert len(rig.telegram.calls_to(SEND)) == 1
    assert (await rig.ask(anna, chat, "I am back")).text == "All right."
    assert said(rig.requests[-1])[1:] == [("user", "Hello\n\nI am back")]
    assert len(chat.replies) == 1


async def test_a18_a_part_that_may_have_arrived_is_not_sent_again(rig: Rig) -> None:
    """If a connection breaks after the request, Telegram may or may not have sent the part."""
    anna, chat = await rig.start_with_anna(lease_s=4)  # a call takes at most half as long
    doubts: Doubts = ((DropConnection(), 0), (SentThenDrop(), 1), (SlowAnswer(3), 1))
    for number, (fault, copies) in enumerate(doubts, start=1):
        text = f"Perhaps you hear this, perhaps not: {number}."
        rig.script.then(text)
        rig.telegram.faults.add(fault, method=SEND)
        await anna.say(chat, "Hello")
        assert (await closed(rig, number))["outcome"] == "unknown"
        assert [reply.text for reply in chat.replies].count(text) == copies
    assert (await rig.ask(anna, chat, "Did you say something?")).text == "All right."
    assert len(chat.replies) == 3
    assert len(rig.telegram.calls_to(SEND)) == len(rig.requests) == 4
