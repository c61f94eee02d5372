"""The inputs that once did harm, one row each; the function of a row sends and checks.

`test_attacks` runs them one by one against a running bot, while another person asks questions.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass

from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import sentence
from tests.hostile.untrusted_files import export_of, photo, picture_of_segments
from tests.servers.bot_api import Chat, Person, Upload

MARKS = ".!?…" * 1_015


@dataclass(frozen=True, slots=True)
class Scene:
    """A running bot, the attacker, and the chats from which the attacker writes."""

    rig: Rig
    mallory: Person
    chat: Chat
    group: Chat


@dataclass(frozen=True, slots=True)
class Attack:
    """One input by its finding; `run` sends it and checks what its docstring says."""

    name: str
    run: Callable[[Scene], Coroutine[None, None, None]]


async def _marks(scene: Scene) -> None:
    """Check that they are found and shown to the model."""
    for number in range(12):
        text = f"my zebra number {number} {MARKS[:4_030]}"
        await scene.rig.ask(scene.mallory, scene.chat, text)
    await scene.rig.ask(scene.mallory, scene.chat, "/new")
    for _ in range(3):
        await scene.rig.ask(scene.mallory, scene.chat, "what is my zebra called?")
    asked = [request for request in scene.rig.requests if "zebra called" in request.asked]
    assert "zebra number" in asked[0].messages[-1].content


async def _made_up_words(scene: Scene) -> None:
    """Have at most eight unknown words compared with all words of the chat."""
    chance = random.Random(7)
    for _ in range(8):
        words = ("".join(chance.choices("abcdefghijklmnop", k=6)) for _ in range(570))
        said = await scene.mallory.say(scene.chat, " ".join(words))
    await scene.chat.wait_for_reply(after=said)
    await scene.rig.ask(scene.mallory, scene.chat, "/new")
    words = ("".join(chance.choices("qrstuvwxyz", k=6)) for _ in range(570))
    await scene.rig.ask(scene.mallory, scene.chat, " ".join(words))


async def _flood(scene: Scene) -> None:
    """Check that they are answered together."""
    for number in range(60):
        last = await scene.mallory.say(scene.group, f"{US} {number}")
    await scene.group.wait_for_reply(after=last)


async def _cookie(scene: Scene) -> None:
    """Check that the inspector asks for the token."""
    port = int(scene.rig.environment["PORT"])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    cookie = b'inspector="' + b'\\"' * 30_000 + b'"'
    writer.write(b"GET /inspect HTTP/1.1\r\nHost: bot\r\nCookie: " + cookie + b"\r\n\r\n")
    assert (await reader.readline()).split()[1] == b"401"
    writer.close()


async def _answered(scene: Scene, file: Upload) -> str:
    sent = await scene.mallory.send(scene.chat, "document", file)
    return (await scene.chat.wait_for_reply(after=sent)).text


async def _segments(scene: Scene) -> None:
    """Check that it is refused; the bot's process parses nothing and takes at most 40 MB."""
    before_mb = scene.rig.bot.peak_mb()
    reply = await _answered(scene, picture_of_segments(4))
    assert reply in (sentence("pictures.too_big"), sentence("pictures.damaged"))
    assert scene.rig.bot.peak_mb() < before_mb + 40


async def _heavy_album(scene: Scene) -> None:
    """Check that what the model gets has less than 1 MB."""
    before_mb = scene.rig.bot.peak_mb()
    for _ in range(4):
        sent = await scene.mallory.send(scene.chat, "document", photo(megabytes=16))
    await scene.chat.wait_for_reply(after=sent)
    assert max([len(str(request.raw)) for request in scene.rig.requests]) < 2**20
    assert scene.rig.bot.peak_mb() < before_mb + 80


async def _sounds(scene: Scene) -> None:
    """Check that one of them is in memory at a time."""
    before_mb = scene.rig.bot.peak_mb()
    for _ in range(6):
        sound = Upload(bytes(16 * 2**20), "voice.ogg", "audio/ogg")
        sent = await scene.mallory.send(scene.chat, "voice", sound)
    await scene.chat.wait_for_reply(after=sent)
    assert scene.rig.bot.peak_mb() < before_mb + 80


async def _short_messages(scene: Scene) -> None:
    """Check that 60,000 of them are offered."""
    before_mb = scene.rig.bot.peak_mb()
    reply = await _answered(scene, export_of(250, 2_000, "a"))
    assert "Claude" in reply
    assert scene.rig.bot.peak_mb() < before_mb + 80


FILES = (
    Attack("S2 a picture of a million segments", _segments),
    Attack("S3 an album of small pictures with 16 MB behind each", _heavy_album),
    Attack("S3 six sounds of 16 MB", _sounds),
    Attack("S4 an export with half a million messages of one letter", _short_messages),
)
TEXTS = (
    Attack("F2 twelve messages of 4,060 sentence marks, then a question about them", _marks),
    Attack("S12 eight messages of made-up words, then one of others", _made_up_words),
    Attack("F9 60 messages at once", _flood),
    Attack("a cookie of 60,000 characters", _cookie),
)
