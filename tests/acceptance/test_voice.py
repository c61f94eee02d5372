"""People speak: what was heard is quoted, answered and remembered; the sound is not."""

from bot.features.voice.servers import MAX_CHARS
from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import dialogue
from tests.acceptance.test_delivery import closed
from tests.servers.bot_api import Chat, Upload
from tests.servers.model_api import Break, TranscriptionRequest, is_transcription


def spoken(words: str) -> Upload:
    """Return a voice message; the local server hears its bytes as text."""
    return Upload(words.encode(), mime_type="audio/ogg")


def heard(rig: Rig) -> list[TranscriptionRequest]:
    calls = (call.request for call in rig.model.log.calls)
    return [call for call in calls if isinstance(call, TranscriptionRequest)]


async def test_what_is_said_is_heard_answered_and_remembered(rig: Rig) -> None:
    rig.script.on("My sister lives in *zanzibar*", "So far away!")
    rig.script.on("My sister lives in *Oulu*", "That is in the north.")
    rig.script.on("Thank you", "You're welcome.")
    anna, chat = await rig.start_with_anna()

    reply = await rig.send(anna, chat, "voice", spoken("My sister lives in *zanzibar*"))
    await closed(rig, 1)
    assert reply.text == "🎙 My sister lives in *zanzibar*\n\nSo far away!"
    assert [each.type for each in reply.entities] == ["blockquote"]
    [asked] = heard(rig)
    assert (asked.file_name, asked.mime_type) == ("voice.ogg", "audio/ogg")
    assert rig.requests[-1].asked == "My sister lives in *zanzibar*"

    # What was heard wrong is replaced, and answered again in the same message.
    assert await press(rig, anna, reply, "Heard wrong") == ""
    question = chat.replies[-1]
    assert question.text == sentence("voice.ask")
    await anna.say(chat, "My sister lives in *Oulu*", reply_to=question)
    await shown(rig, reply, "That is in the north.")
    await closed(rig, 2)
    await rig.ask(anna, chat, "Thank you")
    assert dialogue(rig) == ["My sister lives in *Oulu*", "That is in the north.", "Thank you"]
    stored = await rig.stored()
    assert b"Oulu" in stored
    assert b"zanzibar" not in stored

    # A worker that dies while it listens: the next one listens again, and there is one answer.
    rig.model.faults.add(Break.HANG, when=is_transcription)
    rig.script.on("Remember the milk", "I will.")
    voice = await anna.send(chat, "voice", spoken("Remember the milk"))
    await rig.model.wait_for(lambda call: bool(call.faults))
    await rig.restart()
    reply = await chat.wait_for_reply(after=voice)
    assert reply.text == "🎙 Remember the milk\n\nI will."

    # In a group only what is addressed to the bot is heard.
    ben, _ = rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    await ben.send(group, "voice", spoken("not for the bot"))
    greeting = await rig.ask(ben, group, "@ricordo_bot Thank you")
    rig.script.on("How are you", "Fine.")
    reply = await rig.send(ben, group, "voice", spoken("How are you"), reply_to=greeting)
    assert reply.text == "🎙 How are you\n\nFine."
    await press(rig, anna, reply, "Heard wrong")
    assert [each.sound for each in heard(rig)[3:]] == [b"How are you"]
    assert group.replies[-1] == reply


async def refused(rig: Rig, chat: Chat, sound: Upload, caption: str = "") -> str:
    anna, _ = rig.anna()
    return (await rig.send(anna, chat, "audio", sound, caption=caption)).text


async def test_a_sound_that_cannot_be_heard_gets_a_sentence(rig: Rig) -> None:
    rig.script.on("What a song", "Nice title.")
    anna, chat = await rig.start_with_anna(coalesce_s=0)
    song = Upload(b"la la", "song.mid", "audio/midi")
    assert await refused(rig, chat, song) == sentence("voice.format")
    with_words = await refused(rig, chat, song, "What a song")
    assert with_words == "Nice title.\n\n" + sentence("voice.format")
    assert await refused(rig, chat, Upload(b" ", "", "audio/ogg")) == sentence("voice.silence")
    talk = await anna.send(chat, "document", Upload(bytes(20 * 2**20), "talk.mp3", "audio/mpeg"))
    assert (await chat.wait_for_reply(after=talk)).text == sentence("voice.too_long")
    huge = Upload(bytes(20 * 2**20 + 1), "", "audio/ogg")
    assert await refused(rig, chat, huge) == sentence("voice.too_big")
    long = await refused(rig, chat, Upload(b"word " * 2 * MAX_CHARS, "", "audio/ogg"))
    assert long.startswith("🎙 word word")
    assert len(long) < 1_000
    assert len(rig.requests[-1].asked) <= MAX_CHARS
    missing = frozenset({"/v1/audio/transcriptions"})
    rig.model.dialect = rig.model.dialect.__class__(missing_paths=missing)
    assert await refused(rig, chat, Upload(b"hello", "", "audio/ogg")) == sentence("voice.refused")
