"""Small files that unpack to much: refused kindly, and the bot goes on with little memory."""

from io import BytesIO

from PIL import Image

from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import said
from tests.acceptance.test_pictures import answered, has_picture
from tests.bot.parsing.office import word, zipped
from tests.bot.parsing.test_pictures import png_that_states
from tests.servers.bot_api import Chat, MediaKind, Person, Upload

_MB = 2**20
MAX_GROWTH_MB = 64
"""A download takes at most 20 MB, and what a parser takes is not in the bot's process."""


async def test_what_unpacks_to_much_is_refused_and_the_bot_goes_on(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(coalesce_s=0)
    await rig.ask(anna, chat, "Hello")
    before_mb = rig.bot.peak_mb()

    huge = Upload(png_of_lines(30_000), "huge.png", "image/png")
    assert len(huge.content) < _MB
    assert await answer_to(anna, chat, huge) == sentence("pictures.too_big")
    empty = Upload(png_that_states(4_000, 4_000), "empty.png", "image/png")
    assert await answer_to(anna, chat, empty) == sentence("pictures.damaged")
    spaces = zipped({"word/document.xml": b"<w>" + b" " * (50 * _MB)}, word())
    assert len(spaces) < _MB
    refused = sentence("files.refused_too_long", name="bomb.docx", mb="20")
    assert await answer_to(anna, chat, Upload(spaces, "bomb.docx")) == refused

    rig.telegram.grow_files(50)
    sound = Upload(bytes(_MB), mime_type="audio/ogg")
    assert await answer_to(anna, chat, sound, "voice") == sentence("voice.too_big")
    photo = Upload(bytes(_MB), "a.png", "image/png")
    assert await answer_to(anna, chat, photo) == sentence("pictures.too_big")
    text = Upload(bytes(_MB), "a.txt", "text/plain")
    refused = sentence("files.refused_too_big", name="a.txt", mb="20")
    assert await answer_to(anna, chat, text) == refused
    rig.telegram.grow_files(0)

    assert rig.bot.peak_mb() < before_mb + MAX_GROWTH_MB
    assert [asked.asked for asked in rig.requests] == ["Hello"]

    # A picture of a camera, sent as a file, is made smaller.
    file = BytesIO()
    Image.new("RGB", (4_000, 3_000), "blue").save(file, "JPEG")
    camera = Upload(file.getvalue(), "DSC0001.jpg", "image/jpeg")
    assert await answer_to(anna, chat, camera) == "All right."
    assert has_picture(answered(rig)[-1])
    assert "Hello" in str(said(answered(rig)[-1]))


async def answer_to(person: Person, chat: Chat, file: Upload, kind: MediaKind = "document") -> str:
    sent = await person.send(chat, kind, file)
    return (await chat.wait_for_reply(after=sent)).text


def png_of_lines(side: int) -> bytes:
    file = BytesIO()
    Image.new("1", (side, side)).save(file, "PNG")
    return file.getvalue()
