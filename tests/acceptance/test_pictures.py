"""People send photos: the model sees them in this turn, and what they showed is remembered."""

import re
from base64 import b64encode
from io import BytesIO

import orjson
import pytest
from PIL import Image

from bot.language.catalogue import Catalogue
from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence, sentence_in
from tests.acceptance.talk import said
from tests.acceptance.test_delivery import closed
from tests.servers.bot_api import Refuse, Upload
from tests.servers.model_api import ApiRequest, Break, ChatRequest, Reply, server_error, tool_call
from tests.servers.model_api.errors import bad_request, content_filtered
from tests.servers.model_api.rules import Dialect

SHOWS = "What does it show?"
UNSEEN = "[you cannot see the picture]"
TABLE = "| boat | *metres* |\n|---|---|\n| Aurora | 12 |"
PLAIN = "boat   | metres\n-------+-------\nAurora | 12"


def jpeg(color: str) -> bytes:
    file = BytesIO()
    Image.new("RGB", (640, 480), color).save(file, "JPEG")
    return file.getvalue()


def has_picture(request: ApiRequest) -> bool:
    return isinstance(request, ChatRequest) and "data:image/" in str(request.raw)


def answered(rig: Rig) -> list[ChatRequest]:
    """Return the requests for answers, without those for descriptions."""
    return [request for request in rig.requests if SHOWS not in request.asked]


@pytest.mark.parametrize("api", ["chat", "responses"])
async def test_a_photo_is_seen_answered_and_remembered_as_text(rig: Rig, api: str) -> None:
    rig.script.on(SHOWS, "A blue stamp. Text: OULU 12 MAY")
    rig.script.on("My passport", "A stamp from Oulu.")
    rig.script.on("What was on it", "OULU 12 MAY.")
    anna, chat = await rig.start_with_anna(openai_api=api, coalesce_s=0)
    stamp = jpeg("blue")
    url = f"data:image/jpeg;base64,{b64encode(stamp).decode()}"

    reply = await rig.send(anna, chat, "photo", Upload(stamp), caption="My passport")
    assert reply.text == "A stamp from Oulu."
    await closed(rig, 1)
    [asked] = answered(rig)
    assert asked.asked == "[photo]\n\nMy passport"
    prompt = asked.raw["messages" if api == "chat" else "input"]
    assert isinstance(prompt, list)
    if api == "chat":
        part: object = {"type": "image_url", "image_url": {"url": url, "detail": "low"}}
    else:
        part = {"type": "input_image", "image_url": url, "detail": "low"}
    assert prompt[-1]["content"][1:] == [part]

    # In later turns it is text, which is not the person's own.
    await rig.ask(anna, chat, "What was on it?")
    await closed(rig, 2)
    assert not has_picture(rig.requests[-1])
    told = "[photo] A blue stamp. Text: OULU 12 MAY\n\nMy passport"
    assert said(rig.requests[-1])[1] == ("user", told)
    stored = await rig.stored()
    assert b"OULU 12 MAY" in stored
    assert stamp[-200:] not in stored
    assert url[-200:].encode() not in stored
    if api == "responses":
        return

    # In a group only what is addressed to the bot is fetched.
    group = rig.telegram.group("Club", [anna])
    await anna.send(group, "photo", Upload(jpeg("green")))
    upload = Upload(jpeg("white"))
    photo = await anna.send(group, "photo", upload, caption="@ricordo_bot My passport")
    reply = await group.wait_for_reply(after=photo)
    assert group.replies == [reply]
    assert answered(rig)[-1].asked.endswith("Anna: My passport")

    # What is erased with the photo is its description, too.
    question = await rig.ask(anna, group, "/forget", reply_to=photo)
    await press(rig, anna, question, "Erase")
    await rig.ask(anna, group, "@ricordo_bot What was on it?")
    assert "[photo]" not in str(said(rig.requests[-1]))


async def test_a_model_without_eyes_says_so_and_is_not_shown_pictures_again(rig: Rig) -> None:
    text = "Invalid content type. image_url is only supported by certain models."
    refusal = bad_request(text, "messages[1].content[1].type", "invalid_value")
    rig.model.dialect = Dialect(refuses=lambda asked: refusal if has_picture(asked) else None)
    rig.script.on("Our boat", "A fine name.")
    anna, chat = await rig.start_with_anna(coalesce_s=0)
    note = sentence("pictures.blind")
    reply = await rig.send(anna, chat, "photo", Upload(jpeg("blue")), caption="Our boat Aurora")
    assert reply.text == f"A fine name.\n\n{note}"
    await closed(rig, 1)
    assert answered(rig)[-1].asked == f"[photo]\n\nOur boat Aurora\n\n{UNSEEN}"

    before = len(rig.model.log.refusals)
    photo = await anna.send(chat, "photo", Upload(jpeg("red")))
    assert (await chat.wait_for_reply(after=photo)).text == f"All right.\n\n{note}"
    assert (await rig.ask(anna, chat, "Thanks", reply_to=photo)).text == "All right."
    broken = await anna.send(chat, "document", Upload(b"no picture", "a.png", "image/png"))
    assert (await chat.wait_for_reply(after=broken)).text == sentence("pictures.damaged")
    assert "send_photo_again" in str(rig.requests[-1].raw["tools"])

    # An operator may turn photos off. Then nothing is fetched, and there is no tool to send them.
    await rig.bot.stop()
    await rig.start(image_detail="off")
    assert (await rig.send(anna, chat, "photo", Upload(jpeg("blue")))).text == note.strip()
    photo = await anna.send(chat, "photo", Upload(jpeg("red")), caption="Our boat Aurora")
    assert (await chat.wait_for_reply(after=photo)).text.startswith("A fine name.")
    assert (await rig.ask(anna, chat, "Thanks", reply_to=photo)).text == "All right."
    assert "send_photo_again" not in str(rig.requests[-1].raw["tools"])
    assert len(rig.model.log.refusals) == before


async def test_a_picture_that_a_filter_refuses_is_not_shown_again_and_its_words_are_answered(
    rig: Rig,
) -> None:
    rig.model.dialect = Dialect(refuses=lambda a: content_filtered() if has_picture(a) else None)
    rig.script.on("Our boat", Reply("A fine name for a boat.", chunk_delay_s=0.1))
    await rig.start(coalesce_s=0, features="tests.acceptance.operator_parts:rich")
    anna, chat = rig.anna("de")
    note = sentence_in("de", "pictures.not_shown")
    reply = await rig.send(anna, chat, "photo", Upload(jpeg("blue")), caption="Our boat Aurora")
    assert (reply.text, reply.keyboard) == (f"A fine name for a boat.\n\n{note}", ())
    assert (await closed(rig, 1))["attempts"] == 1
    [asked] = rig.requests
    assert asked.asked == f"[photo]\n\nOur boat Aurora\n\n{UNSEEN}"
    frames = [call.text for call in rig.telegram.calls_to("sendMessageDraft")]
    assert frames
    assert all(reply.text.startswith(frame) for frame in frames)
    # The answer and the description showed it, once each.
    assert len(rig.model.log.refusals) == 2
    rig.script.on("Hello", TABLE)
    await rig.ask(anna, chat, "Hello")
    (call,) = rig.telegram.calls_to("sendRichMessage")
    assert orjson.loads(call.given.text("rich_message")) == {"markdown": TABLE}
    told = [
        ("user", "[photo] [refused]\n\nOur boat Aurora"),
        ("assistant", "A fine name for a boat."),
    ]
    assert said(rig.requests[-1])[1:3] == told

    # A table of a message without a caption is not sent as a rich message: the note is below it.
    rig.script.on("[photo]", TABLE)
    assert (await rig.send(anna, chat, "photo", Upload(jpeg("red")))).text == f"{PLAIN}\n\n{note}"
    await closed(rig, 3)

    # If the try without the picture fails, the person may have the words answered later.
    rig.model.faults.add(
        Break.HTML, when=lambda ask: isinstance(ask, ChatRequest) and UNSEEN in ask.asked
    )
    refused = await rig.send(anna, chat, "photo", Upload(jpeg("blue")), caption="Our boat Borea")
    assert refused.text == sentence_in("de", "pictures.refused")
    await closed(rig, 4)
    refusals = len(rig.model.log.refusals)
    await press(rig, anna, refused, Catalogue().text("de", "buttons.again"))
    await shown(rig, refused, "A fine name for a boat.")
    await closed(rig, 5)
    assert len(rig.model.log.refusals) == refusals


async def test_a_reply_to_a_photo_shows_it_even_if_it_was_not_for_us_and_stores_nothing_of_it(
    rig: Rig,
) -> None:
    (anna, _), (ben, _) = await rig.start_with_anna(), rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    wall = await ben.send(group, "photo", Upload(jpeg("green")), caption="My wall")
    await rig.ask(anna, group, "@ricordo_bot Which color?", reply_to=wall)
    await closed(rig, 1)
    [asked] = rig.requests
    assert has_picture(asked)
    assert re.search(r"replied to: \[.*\] Ben: \[photo\]\n  My wall \(partly", asked.memory)
    assert b"My wall" not in await rig.stored()
    rig.model.dialect = Dialect(refuses=lambda a: content_filtered() if has_picture(a) else None)
    photo = await anna.send(group, "photo", Upload(jpeg("red")), caption="@ricordo_bot Our boat")
    await group.wait_for_reply(after=photo)
    before = len(rig.model.log.refusals)
    await rig.ask(anna, group, "@ricordo_bot Is it big?", reply_to=photo)
    assert len(rig.model.log.refusals) == before


async def test_a_photo_can_be_sent_again(rig: Rig) -> None:
    rig.script.on(SHOWS, "A blue stamp from Oulu.", "A red kite over a beach.")
    wanted = Reply(tool_calls=(tool_call("send_photo_again", query="the stamp from Oulu"),))
    rig.script.on("Show me", wanted, "Here it is.", wanted, "Here it is.")
    anna, chat = await rig.start_with_anna(coalesce_s=0)
    for number, color in enumerate(("blue", "red"), 1):
        await rig.send(anna, chat, "photo", Upload(jpeg(color)))
        await closed(rig, number)

    sent = await rig.ask(anna, chat, "Show me the stamp")

    assert sent.media
    assert (sent.media.kind, sent.text) == ("photo", "Here it is.")
    assert sent.file.content == jpeg("blue")
    assert sent.file.id not in str(rig.requests[-1].raw)

    # `search_memory` shows numbers: that of the photo, or of a message sent with it.
    await closed(rig, 3)
    for text, named in (("By number", "#3"), ("By its answer", "4"), ("No photo", "#5")):
        call = Reply(tool_calls=(tool_call("send_photo_again", query=named),))
        rig.script.on(text, call, "Here it is.")
    for text in ("By number", "By its answer"):
        sent = await rig.ask(anna, chat, text)
        assert sent.file.content == jpeg("red")
    assert (await rig.ask(anna, chat, "No photo")).media is None

    # It can be sent again without end, until Telegram does not have it any more.
    for method in ("sendPhoto", "sendDocument"):
        rig.telegram.faults.add(Refuse(400, "Bad Request: wrong file identifier"), method=method)
    sent = await rig.ask(anna, chat, "Show me the stamp")
    assert sent.media is None
    assert sent.text.startswith("Here it is.")

    # If no answer came, the picture is seen when it is asked again.
    rig.model.faults.add(server_error(), times=None)
    failed = await rig.send(anna, chat, "photo", Upload(jpeg("red")))
    rig.model.faults.clear()
    await press(rig, anna, failed, "Ask again")
    await shown(rig, failed, "All right.")
    assert has_picture(answered(rig)[-1])


async def test_a_sticker_that_does_not_move_is_seen_beside_its_emoji(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(coalesce_s=0)
    picture = BytesIO()
    Image.new("RGB", (512, 512), "blue").save(picture, "WEBP")
    await rig.send(anna, chat, "sticker", Upload(picture.getvalue()))
    await closed(rig, 1)
    [asked] = answered(rig)
    assert asked.asked == "[photo]\n\n🙂"
    assert "data:image/webp" in str(asked.raw)
