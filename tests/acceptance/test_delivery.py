"""A reply arrives whole and once, or does not count as said (A17, A18)."""

from memory.store.client import RedisClient
from memory.store.keys import Scope
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.bot_api import Chat, FloodWait, Hang, Refuse, utf16_length

SEND = "sendMessage"
CODE = "\n".join(f"print({number!r}, '🧭 {number * number}')" for number in range(300))
TALK = " ".join(f"Word {number} of many 👩‍👩‍👧‍👦🇩🇪." for number in range(140))


async def closed(rig: Rig, number: int, event: str = "turn closed") -> dict[str, object]:
    """Return the log line of the `number`-th closed turn, or of another event."""
    await rig.bot.wait_until(lambda: len(rig.bot.lines(event)) >= number)
    return rig.bot.lines(event)[number - 1]


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

    refused = Refuse(400, "Bad Request: can't parse entities: Unsupported start tag")
    rig.telegram.faults.add(refused, method=SEND)
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
    assert annas.texts == ["All right."] * 2
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
