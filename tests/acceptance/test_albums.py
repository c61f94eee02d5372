"""An album comes as one message for each picture, with one caption; it is answered once."""

from bot.features.pictures.feature import LATE_PHOTO_MARK
from tests.acceptance.buttons import shown
from tests.acceptance.rig import Rig
from tests.acceptance.test_delivery import closed
from tests.acceptance.test_pictures import SHOWS, answered, has_picture, jpeg
from tests.servers.bot_api import Upload
from tests.servers.model_api import Break, Call, ChatRequest

ALBUM = [Upload(jpeg(color)) for color in ("red", "green", "blue")]
LATE = [Upload(jpeg("black"))]


def pictures(request: ChatRequest) -> int:
    return str(request.raw).count("data:image/")


async def test_in_a_group_a_caption_or_a_reply_addresses_us_for_the_whole_album(rig: Rig) -> None:
    rig.script.on("Our trip", "Three colors.")
    rig.script.on("Our way home", "Home again.")
    walls = [f"{color} wall" for color in ("A red", "A green", "A blue")]
    rig.script.on(SHOWS, "\n".join(f"[{at}] {wall}" for at, wall in enumerate(walls, 1)))
    anna, _ = await rig.start_with_anna(coalesce_s=0, prompt_tokens=16_000)
    ben, _ = rig.ben()
    group = rig.telegram.group("Club", [anna, ben])

    # The mention is on the third picture; two came before it.
    others = await ben.send_album(group, ALBUM[:2], "Only for you")
    photos = await anna.send_album(group, ALBUM, "@ricordo_bot Our trip", caption_at=2)
    reply = await group.wait_for_reply(after=photos[-1])
    assert reply.text == "Three colors."
    assert pictures(answered(rig)[-1]) == len(ALBUM)
    assert (await closed(rig, 1))["messages"] == len(ALBUM)

    # A new caption is answered again, in place of the former answer and with the pictures.
    await anna.edit(photos[2], "@ricordo_bot Our way home")
    await shown(rig, reply, "Home again.")
    await closed(rig, 2)
    assert len(group.replies) == 1
    assert pictures(answered(rig)[-1]) == len(ALBUM)
    assert str(answered(rig)[-1].raw).count("[photo]") == len(ALBUM)
    stored = await rig.stored()
    assert [wall for wall in walls if stored.count(f"[photo] {wall}".encode()) != 1] == []

    # A late picture has no caption; it says to which album it belongs.
    [late] = await anna.send_album(group, LATE, album_of=photos[0])
    reply = await group.wait_for_reply(after=late)
    assert answered(rig)[-1].asked.endswith(f"Anna: {LATE_PHOTO_MARK}")
    await closed(rig, 3)

    # An album that answers the bot is for it.
    photos = await anna.send_album(group, ALBUM, "And these?", reply_to=reply)
    await group.wait_for_reply(after=photos[-1])
    assert (await closed(rig, 4))["messages"] == len(ALBUM)
    assert pictures(answered(rig)[-1]) == len(ALBUM)
    assert len(group.replies) == 3

    # A video of the album may have the caption.
    caption = "@ricordo_bot And now?"
    photos = await anna.send_album(group, [*ALBUM[:2], "video"], caption, caption_at=2)
    await group.wait_for_reply(after=photos[-1])
    assert pictures(answered(rig)[-1]) == 2

    stored = await rig.stored()
    for photo, is_stored in ((photos[0], True), *((each, False) for each in others)):
        assert (photo.file.id.encode() in stored) is is_stored


async def test_albums_in_private_and_in_a_group_are_answered_once_through_a_crash(rig: Rig) -> None:
    rig.script.on("Our trip", "Three colors.")
    anna, chat = await rig.start_with_anna(coalesce_s=0, prompt_tokens=16_000)
    ben, _ = rig.ben()
    group = rig.telegram.group("Club", [ben])

    def shows_all(call: Call) -> bool:
        """Whether it asks for an answer; each answer has one call that describes all of it."""
        asked = call.request
        return (
            isinstance(asked, ChatRequest)
            and SHOWS not in asked.asked
            and pictures(asked) == len(ALBUM)
        )

    def of_ben(call: Call) -> bool:
        return isinstance(call.request, ChatRequest) and "Ben: " in call.request.asked

    rig.model.faults.add(Break.HANG, when=has_picture, times=99)
    await anna.send_album(chat, ALBUM, "Our trip")
    await ben.send_album(group, ALBUM, "@ricordo_bot Our trip", caption_at=1)
    await rig.model.wait_for(lambda call: shows_all(call) and of_ben(call))
    await rig.model.wait_for(lambda call: shows_all(call) and not of_ben(call))
    await rig.restart()
    rig.model.faults.clear()
    for number in (1, 2):
        assert (await closed(rig, number))["messages"] == len(ALBUM)
    for place in (chat, group):
        assert place.texts == ["Three colors."]
    assert sum(map(shows_all, rig.model.log.calls)) == 4

    # A video without a caption takes nothing from the photos beside it.
    photos = await anna.send_album(chat, [ALBUM[0], "video"])
    assert (await chat.wait_for_reply(after=photos[-1])).text == "All right."
    assert pictures(answered(rig)[-1]) == 1
    await closed(rig, 3)

    [late] = await anna.send_album(chat, LATE, album_of=photos[0])
    await chat.wait_for_reply(after=late)
    assert answered(rig)[-1].asked.endswith(LATE_PHOTO_MARK)
    assert "Our trip" in str(answered(rig)[-1].raw)
