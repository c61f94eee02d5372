"""What the bot saw and heard is exported, and nothing of it stays after an erasure.

It runs on the embedded server, so that its files can be searched, too.
"""

import asyncio
from pathlib import Path

from tests.acceptance.buttons import erase_now
from tests.acceptance.rig import Rig
from tests.acceptance.test_delivery import closed
from tests.acceptance.test_pictures import SHOWS, jpeg
from tests.acceptance.test_voice import spoken
from tests.servers.bot_api import Chat, Message, Person, Upload
from tests.stored import everything_on_disk

SEEN, READ, HEARD = "quokka", "ABRACADABRA", "zanzibar"


async def send(rig: Rig, person: Person, chat: Chat) -> tuple[Message, Message]:
    """Send a photo and a voice message, and wait until both are remembered."""
    photo = await person.send(chat, "photo", Upload(jpeg("blue")), caption="Look")
    await chat.wait_for_reply(after=photo)
    voice = await person.send(chat, "voice", spoken(f"My sister lives in {HEARD}"))
    await chat.wait_for_reply(after=voice)
    await closed(rig, 2)
    return photo, voice


async def where_found(rig: Rig, data: Path, *words: str) -> list[tuple[str, str]]:
    """Return which of the words stand in keys, in the server's files and in log lines."""
    places = {
        "a key": await rig.stored(),
        "a file": everything_on_disk(data),
        "a log": "\n".join(rig.bot.raw).encode(),
    }
    return [(word, place) for word in words for place in places if word.encode() in places[place]]


async def gone(rig: Rig, data: Path, *words: str) -> None:
    """Wait until the server has rewritten its file; raise `TimeoutError` if a word stays."""
    async with asyncio.timeout(60):
        while await where_found(rig, data, *words):
            pass


async def test_nothing_seen_or_heard_stays_after_an_erasure(rig: Rig, tmp_path: Path) -> None:
    data = tmp_path / "data"
    rig.script.on(SHOWS, f"A {SEEN}. Text: {READ}")
    await rig.start(redis_url="", data_dir=data, coalesce_s=0)
    rig.environment["REDIS_URL"] = f"unix://{data}/valkey.sock"
    anna, chat = rig.anna()
    for command in ("/clear", "/forget"):
        photo, voice = await send(rig, anna, chat)
        words = (SEEN, READ, HEARD)
        found = await where_found(rig, data, *words)
        assert found == [(word, place) for word in words for place in ("a key", "a file")]
        assert "a key" in {at for _, at in await where_found(rig, data, photo.file.id)}
        export = await rig.ask(anna, chat, "/export")
        content = export.file.content.decode()
        assert [word in content for word in words] == [True] * 3

        # One photo, by a reply to it.
        await erase_now(rig, anna, chat, "/forget", reply_to=photo)
        await gone(rig, data, SEEN, READ, photo.file.id)
        assert (HEARD, "a key") in await where_found(rig, data, HEARD)

        # The rest, in two ways.
        await erase_now(rig, anna, chat, command)
        await gone(rig, data, HEARD, voice.file.id)
        await rig.ask(anna, chat, f"What of the {SEEN[:4]} and the sister?")
        assert not any(word in str(rig.requests[-1].raw) for word in words)
