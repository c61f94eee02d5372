"""Who speaks to the bot gets a voice note back, with the text; the text comes in any case."""

from collections.abc import Sequence

from tests.acceptance.buttons import press
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.acceptance.test_delivery import closed
from tests.acceptance.test_voice import spoken
from tests.servers.bot_api import Chat, Hang, Message, Person, Refuse
from tests.servers.model_api import OPUS_HEAD, ApiError, Break, SpeechRequest, is_speech

LONG = "It is a long story. " * 60
CODE = "Like this:\n\n```python\nprint(1)\n```"


def heard(rig: Rig) -> list[str]:
    """Return the texts that the speech server was given."""
    requests = (call.request for call in rig.model.log.calls)
    return [each.text for each in requests if isinstance(each, SpeechRequest)]


async def answers(rig: Rig, person: Person, chat: Chat, words: str, n: int) -> Sequence[Message]:
    """Speak to the bot; return its messages of the `n`-th turn."""
    before = len(chat.replies)
    await rig.send(person, chat, "voice", spoken(words))
    await closed(rig, n)
    return chat.replies[before:]


def sound_of(message: Message) -> bytes:
    assert message.media
    assert message.media.kind == "voice"
    return message.file.content


async def test_a_voice_message_is_answered_by_a_voice_note(rig: Rig) -> None:
    rig.script.on("How are you", "I am **fine**.")
    rig.script.on("Tell me all", LONG)
    rig.script.on("Show me code", CODE)
    anna, chat = await rig.start_with_anna(speech_model="mouth", speech_voice="nova", coalesce_s=0)

    [reply] = await answers(rig, anna, chat, "How are you", 1)
    assert reply.text == "🎙 How are you\n\nI am fine."
    assert sound_of(reply) == OPUS_HEAD + b"I am fine."
    assert OPUS_HEAD not in await rig.stored()

    # A text beyond a caption stands below. What nobody wants to hear comes as text alone.
    voice, text = await answers(rig, anna, chat, "Tell me all", 2)
    assert (sound_of(voice), voice.text) == (OPUS_HEAD + LONG.strip().encode(), "")
    assert text.text == f"🎙 Tell me all\n\n{LONG.strip()}"
    [reply] = await answers(rig, anna, chat, "Show me code", 3)
    assert reply.media is None

    # Who writes gets a text. The history knows of no sound.
    assert (await rig.ask(anna, chat, "How are you?")).media is None
    assert ("assistant", "I am **fine**.") in said(rig.requests[-1])
    assert heard(rig) == ["I am fine.", LONG.strip()]

    # What was heard wrong is answered again, as text.
    [reply] = await answers(rig, anna, chat, "How are you", 5)
    await press(rig, anna, reply, "Heard wrong")
    rig.script.on("Who are you", "A bot.")
    corrected = await anna.say(chat, "Who are you", reply_to=chat.replies[-1])
    assert (await chat.wait_for_reply(after=corrected)).text == "A bot."
    assert reply not in chat.replies

    # A crash while the voice note is sent: it is sent once, and nothing is spoken again.
    silence = rig.telegram.faults.add(Hang(30), method="sendVoice")
    voice = await anna.send(chat, "voice", spoken("How are you"))
    await rig.telegram.wait_for(lambda: silence.left == 0)
    times = len(heard(rig))
    await rig.restart()
    reply = await chat.wait_for_reply(after=voice)
    assert sound_of(reply) == OPUS_HEAD + b"I am fine."
    assert len(heard(rig)) == times
    ben, _ = rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    greeting = await rig.ask(ben, group, "@ricordo_bot Hello")
    question = await ben.send(group, "voice", spoken("How are you"), reply_to=greeting)
    reply = await group.wait_for_reply(after=question)
    assert sound_of(reply) == OPUS_HEAD + b"I am fine."
    assert reply.reply_to == question


async def test_without_a_sound_the_text_comes(rig: Rig) -> None:
    rig.script.on("How are you", "I am fine.")
    anna, chat = await rig.start_with_anna(speech_model="mouth", coalesce_s=0)
    forbidden = "Bad Request: VOICE_MESSAGES_FORBIDDEN"
    rig.telegram.faults.add(Refuse(400, forbidden), method="sendVoice", times=None)
    text = "🎙 How are you\n\nI am fine."
    for number in (1, 2):  # the second time no sound is made
        [reply] = await answers(rig, anna, chat, "How are you", number)
        assert (reply.text, reply.media) == (text, None)
    assert len(heard(rig)) == len(rig.telegram.calls_to("sendVoice")) == 1

    ben, bens = rig.ben()
    faults: tuple[ApiError | Break, ...] = (ApiError(400, "no such voice"), Break.HTML)
    for number, fault in enumerate(faults, start=3):
        await rig.restart()
        rig.model.faults.add(fault, when=is_speech)
        [reply] = await answers(rig, ben, bens, "How are you", number)
        assert (reply.text, reply.media) == (text, None)
        assert (await rig.bot.wait_for_log("answer not spoken"))["level"] == "warning"
