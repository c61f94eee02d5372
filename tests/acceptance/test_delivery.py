"""A reply arrives whole and once (A17)."""

from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.servers.bot_api import Hang, Refuse, utf16_length

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
