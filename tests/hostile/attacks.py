"""The inputs that once did harm, one row each: who sends what, where, and what must happen.

`test_attacks` runs them one by one against a running bot, while another person asks questions.
"""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

from tests.acceptance.buttons import press
from tests.acceptance.rig import Rig
from tests.bot.documents.pdfs import slow_pdf
from tests.hostile.shapes import nested
from tests.servers.bot_api import Button, Chat, Person, Upload

US = "@ricordo_bot"
MAX_PARTS = 3
MARKS = ".!?…" * 1_015
HALF_SENT = b"POST /telegram HTTP/1.1\r\nHost: bot\r\nX-Half: "
FORGED = ("forget:1", "clear:1", "admin:1:all", "mem:k1.0.0", "mem:f1.0.0", "doc:1", "yes:1", "x")


@dataclass(frozen=True, slots=True)
class Scene:
    """A running bot, the attacker, and the chats from which the attacker writes."""

    rig: Rig
    mallory: Person
    chat: Chat
    group: Chat


@dataclass(frozen=True, slots=True)
class Attack:
    """One input; `run` sends it and checks what must happen. `places` must not block the loop."""

    finding: str
    who: str
    sends: str
    where: str
    must: str
    run: Callable[[Scene], Coroutine[None, None, None]]
    places: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of its test."""
        return f"{self.finding} {self.sends}"


async def _is_shown(scene: Scene, reply: str) -> list[str]:
    """Let the model answer with `reply`; return the messages in which the bot sends it."""
    question = f"Repeat that ({len(scene.rig.requests)})"
    scene.rig.script.on(question, reply)
    before = len(scene.chat.replies)
    await scene.rig.ask(scene.mallory, scene.chat, question)
    return [message.text for message in scene.chat.replies[before:]]


async def _formula(scene: Scene) -> None:
    reply = nested("\\sqrt", 26)
    assert len(reply) < 190
    (shown,) = await _is_shown(scene, reply)
    assert len(shown) <= len(reply)


async def _lists(scene: Scene) -> None:
    shown = await _is_shown(scene, "- " * 2_000 + "x")
    assert sum(map(len, shown)) <= 8_192


async def _long(scene: Scene) -> None:
    reply = " ".join("`" * length for length in range(1, 240))
    assert len(await _is_shown(scene, reply)) <= MAX_PARTS
    assert len(await _is_shown(scene, "*a* " * 8_000)) <= MAX_PARTS


async def _marks(scene: Scene) -> None:
    for number in range(12):
        text = f"my zebra number {number} {MARKS[:4_030]}"
        await scene.rig.ask(scene.mallory, scene.chat, text)
    await scene.rig.ask(scene.mallory, scene.chat, "/new")
    for _ in range(3):
        await scene.rig.ask(scene.mallory, scene.chat, "what is my zebra called?")
    asked = [request for request in scene.rig.requests if "zebra called" in request.asked]
    assert "zebra number" in asked[0].messages[-1].content


async def _files(scene: Scene) -> None:
    file = Upload(slow_pdf(pages=2, operators=6_000), "slow.pdf", "application/pdf")
    topics = [scene.group.topic(f"Topic {number}") for number in range(4)]
    for topic in topics:
        await scene.mallory.send(scene.group, "document", file=file, caption=US, topic=topic)
    for topic in topics:
        await scene.group.wait_for_reply(topic=topic, timeout_s=60)


async def _flood(scene: Scene) -> None:
    for number in range(60):
        last = await scene.mallory.say(scene.group, f"{US} {number}")
    await scene.group.wait_for_reply(after=last, timeout_s=30)


async def _presses(scene: Scene) -> None:
    await scene.rig.ask(scene.mallory, scene.chat, "My dog is called Zorro")
    message = await scene.rig.ask(scene.mallory, scene.chat, "/privacy")
    for forged in FORGED:
        for data in (forged, forged.upper(), f"{forged}:1", f"-{forged}"):
            shown = replace(message, keyboard=((Button("x", data),),))
            await press(scene.rig, scene.mallory, shown, "x")
    await scene.rig.ask(scene.mallory, scene.chat, "What did I tell you?")
    asked = [request for request in scene.rig.requests if "did I tell" in request.asked]
    assert any("Zorro" in message.content for message in asked[0].messages)


async def _half_sent(scene: Scene) -> None:
    port = int(scene.rig.environment["PORT"])
    async with AsyncExitStack() as held:
        writers = []
        for _ in range(300):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            held.callback(writer.close)
            writer.write(HALF_SENT)
            writers.append(writer)
        await asyncio.gather(*(writer.drain() for writer in writers), return_exceptions=True)
        await scene.rig.ask(scene.mallory, scene.chat, "Are you there?")


async def _endless_header(scene: Scene) -> None:
    port = int(scene.rig.environment["PORT"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HALF_SENT)
    sent = 0
    with suppress(ConnectionError):
        while not reader.at_eof() and not writer.is_closing():
            writer.write(b"a" * 2**14)
            sent += 2**14
            assert sent < 2**23, "eight megabytes of one header were taken"
            await writer.drain()
            await asyncio.sleep(0)
    writer.close()


ATTACKS = (
    Attack(
        "F1",
        "anyone",
        "26 nested roots, 187 characters",
        "asked of the model",
        "one message no longer than the reply",
        _formula,
        ("reply/", "telegramify_markdown/", "latex_escape/"),
    ),
    Attack(
        "F7",
        "anyone",
        "2,000 list marks in one line",
        "asked of the model",
        "at most twice as much text",
        _lists,
        ("reply/", "telegramify_markdown/"),
    ),
    Attack(
        "F7",
        "anyone",
        "30,000 characters of backticks and of entities",
        "asked of the model",
        "at most eight messages",
        _long,
        ("reply/", "telegramify_markdown/"),
    ),
    Attack(
        "F2",
        "anyone",
        "twelve messages of 4,060 sentence marks, then a question about them",
        "private chat",
        "they are found and shown to the model",
        _marks,
        ("memory/search/excerpt.py", "documents/sentences.py"),
    ),
    Attack(
        "F3",
        "one member",
        "a slow PDF in each of four topics",
        "a forum",
        "each is answered, one after another",
        _files,
        ("documents/",),
    ),
    Attack(
        "F9",
        "one member",
        "60 messages at once",
        "a group",
        "they are answered together",
        _flood,
    ),
    Attack(
        "F19",
        "a changed client",
        "32 forged button presses",
        "private chat",
        "nothing is erased, each press is answered",
        _presses,
    ),
    Attack(
        "F8",
        "anyone without the secret",
        "300 half-sent requests",
        "the web port",
        "webhooks get through",
        _half_sent,
        ("bot/runtime/http_protocol.py",),
    ),
    Attack(
        "F8",
        "anyone without the secret",
        "one header without an end",
        "the web port",
        "closed before eight megabytes",
        _endless_header,
        ("bot/runtime/http_protocol.py",),
    ),
)
