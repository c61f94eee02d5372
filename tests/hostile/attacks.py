"""The inputs that once did harm, one row each: who sends what, where, and what must happen.

`test_attacks` runs them one by one against a running bot, while another person asks questions.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, replace

from tests.acceptance.buttons import press
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.bot.parsing.pdfs import slow_pdf
from tests.hostile.shapes import nested
from tests.hostile.untrusted_files import export_of, photo, picture_of_segments, short_rows
from tests.servers.bot_api import Button, Chat, Person, Upload

US = "@ricordo_bot"
MAX_PARTS = 3
MARKS = ".!?…" * 1_015
HALF_SENT = b"POST /telegram HTTP/1.1\r\nHost: bot\r\nX-Half: "
REQUESTS = b"GET /x HTTP/1.1\r\n\r\n" * 800
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
    """One input by its finding, and what must happen; `run` sends the input and checks that."""

    name: str
    must: str
    run: Callable[[Scene], Coroutine[None, None, None]]
    in_forum: bool = False


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


async def _made_up_words(scene: Scene) -> None:
    chance = random.Random(7)
    for _ in range(8):
        words = ("".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(570))
        said = await scene.mallory.say(scene.chat, " ".join(words))
    await scene.chat.wait_for_reply(after=said)
    await scene.rig.ask(scene.mallory, scene.chat, "/new")
    words = ("".join(chance.choices("qrstuvwxyz", k=6)) for _ in range(570))
    await scene.rig.ask(scene.mallory, scene.chat, " ".join(words))


async def _files(scene: Scene) -> None:
    file = Upload(slow_pdf(pages=2, operators=6_000), "slow.pdf", "application/pdf")
    topics = [scene.group.topic(f"Topic {number}") for number in range(4)]
    for topic in topics:
        await scene.mallory.send(scene.group, "document", file=file, caption=US, topic=topic)
    for topic in topics:
        await scene.group.wait_for_reply(topic=topic)


async def _flood(scene: Scene) -> None:
    for number in range(60):
        last = await scene.mallory.say(scene.group, f"{US} {number}")
    await scene.group.wait_for_reply(after=last)


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
    async with AsyncExitStack() as held:
        writers = []
        for _ in range(300):
            _, writer = await _connect(scene)
            held.callback(writer.close)
            writer.write(HALF_SENT)
            writers.append(writer)
        await asyncio.gather(*(writer.drain() for writer in writers), return_exceptions=True)
        await scene.rig.ask(scene.mallory, scene.chat, "Are you there?")


async def _pipelined(scene: Scene) -> None:
    before = scene.rig.bot.peak_mb()
    for _ in range(4):
        _, writer = await _connect(scene)
        with suppress(ConnectionError):
            writer.write(REQUESTS * 500)
            async with asyncio.timeout(60):
                await writer.drain()
        writer.close()
    await scene.rig.ask(scene.mallory, scene.chat, "Are you there?")
    assert scene.rig.bot.peak_mb() - before < 64


async def _headers(scene: Scene) -> None:
    before = scene.rig.bot.peak_mb()
    async with AsyncExitStack() as held:
        for _ in range(200):
            _, writer = await _connect(scene)
            held.callback(writer.close)
            with suppress(ConnectionError):
                writer.write(b"GET / HTTP/1.1\r\n" + b"a:\r\n" * 16_000)
                await writer.drain()
        await scene.rig.ask(scene.mallory, scene.chat, "Are you there?")
    assert scene.rig.bot.peak_mb() - before < 64


async def _unread(scene: Scene) -> None:
    async with AsyncExitStack() as held:
        for _ in range(300):
            _, writer = await _connect(scene)
            held.callback(writer.close)
            writer.write(REQUESTS * 2)
            with suppress(ConnectionError):
                await writer.drain()
        await scene.rig.ask(scene.mallory, scene.chat, "Are you there?")


async def _connect(scene: Scene) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the bot as a caller that reads little of what is answered."""
    port = int(scene.rig.environment["PORT"])
    return await asyncio.open_connection("127.0.0.1", port, limit=1_024)


async def _endless_header(scene: Scene) -> None:
    reader, writer = await _connect(scene)
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


async def _answered(scene: Scene, file: Upload) -> str:
    sent = await scene.mallory.send(scene.chat, "document", file)
    return (await scene.chat.wait_for_reply(after=sent)).text


async def _segments(scene: Scene) -> None:
    before_mb = scene.rig.bot.peak_mb()
    reply = await _answered(scene, picture_of_segments(6))
    assert reply in (sentence("pictures.too_big"), sentence("pictures.damaged"))
    assert scene.rig.bot.peak_mb() < before_mb + 40


async def _heavy_album(scene: Scene) -> None:
    before_mb = scene.rig.bot.peak_mb()
    for _ in range(4):
        sent = await scene.mallory.send(scene.chat, "document", photo(megabytes=16))
    await scene.chat.wait_for_reply(after=sent)
    bodies = [len(str(request.raw)) for request in scene.rig.requests]
    assert max(bodies) < 2**20
    assert scene.rig.bot.peak_mb() < before_mb + 80


async def _sounds(scene: Scene) -> None:
    before_mb = scene.rig.bot.peak_mb()
    for _ in range(6):
        sound = Upload(bytes(16 * 2**20), "voice.ogg", "audio/ogg")
        sent = await scene.mallory.send(scene.chat, "voice", sound)
    await scene.chat.wait_for_reply(after=sent)
    assert scene.rig.bot.peak_mb() < before_mb + 80


async def _short_messages(scene: Scene) -> None:
    before_mb = scene.rig.bot.peak_mb()
    reply = await _answered(scene, export_of(500, 2_000, "a"))
    assert "Claude" in reply
    assert scene.rig.bot.peak_mb() < before_mb + 80


async def _short_rows(scene: Scene) -> None:
    expected = sentence("files.refused_too_long", name="rows.csv", mb="5")
    assert await _answered(scene, short_rows()) == expected


ATTACKS = (
    Attack(
        "S2 a picture of a million segments",
        "refused; the bot's process parses nothing and takes at most 40 MB",
        _segments,
    ),
    Attack(
        "S3 an album of small pictures with 16 MB behind each",
        "what the model gets has less than 1 MB",
        _heavy_album,
    ),
    Attack("S3 six sounds of 16 MB", "one of them is in memory at a time", _sounds),
    Attack(
        "S4 an export with a million messages of one letter",
        "60,000 of them are offered",
        _short_messages,
    ),
    Attack("S11 249,000 rows of one letter", "refused by their parser", _short_rows),
    Attack("F1 26 nested roots, 187 characters", "one message no longer than the reply", _formula),
    Attack("F7 2,000 list marks in one line", "at most twice as much text", _lists),
    Attack("F7 30,000 characters of backticks and of entities", "at most eight messages", _long),
    Attack(
        "F2 twelve messages of 4,060 sentence marks, then a question about them",
        "they are found and shown to the model",
        _marks,
    ),
    Attack(
        "S12 eight messages of made-up words, then one of others",
        "at most eight unknown words are compared with all words of the chat",
        _made_up_words,
    ),
    Attack(
        "F3 a slow PDF in each of four topics",
        "each is answered, one after another",
        _files,
        in_forum=True,
    ),
    Attack("F9 60 messages at once", "they are answered together", _flood),
    Attack("F19 32 forged button presses", "nothing is erased, each press is answered", _presses),
    Attack("F8 300 half-sent requests", "webhooks get through", _half_sent),
    Attack("F8 one header without an end", "closed before eight megabytes", _endless_header),
    Attack(
        "S1 1,600,000 pipelined requests on four connections",
        "memory grows by less than 64 MB",
        _pipelined,
    ),
    Attack(
        "S1 16,000 headers of four bytes on each of 200 connections",
        "memory grows by less than 64 MB",
        _headers,
    ),
    Attack("S1 300 connections whose answers are not read", "webhooks get through", _unread),
)
