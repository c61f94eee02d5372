"""An answer is spoken if it can be, and never lost."""

import asyncio

from bot.features.voice.feature import SpokenAnswers
from bot.features.voice.servers import Speaker
from bot.reply.parts import Part
from bot.turn.outbox import Outbox
from tests.bot.turn.test_typing_indicator import request
from tests.quiet_chat import QuietChat


class SlowSpeaker(Speaker):
    def __init__(self) -> None:
        self.asked: list[str] = []

    async def sound(self, text: str) -> bytes:
        self.asked.append(text)
        await asyncio.Event().wait()
        return b""


async def test_an_answer_is_not_lost_if_its_sound_takes_beyond_the_deadline() -> None:
    asked, speaker = request(), SlowSpeaker()
    answer = Outbox(asked.to, (Part("I am fine."),), said="I am fine.")

    spoken = SpokenAnswers(speaker, QuietChat())
    asked.run.heard = ((1, "How are you?"),)
    asked.run.ends_at = asyncio.get_running_loop().time() + 0.01
    assert await spoken.spoken(asked, answer) == answer
    assert speaker.asked == ["I am fine."]
