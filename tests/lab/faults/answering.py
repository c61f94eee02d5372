"""Processes that die while an answer grows, is given again after an edit, or is stopped.

A strike in a chat of its own judges that chat itself: replaced messages leave gaps in the history,
which the verdict of a day takes for losses.
"""

import asyncio
from dataclasses import dataclass

from bot.turn.outbox import Outbox
from memory.message import Message
from memory.scopes.log import message_of, seq_of
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.scripted_day import answer_to, markers, parts_of
from tests.acceptance.sentences import sentence
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import BEING_SENT, STREAMING
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.servers.bot_api import Chat, Person, SlowAnswer
from tests.valkey import opened

_WRITTEN_S = 1.6
"""A slow answer is complete at most this long after its first frame, or after the edit."""

_STOPPING_S = 0.1
_QUIET_S = 60
_FIRST_MARKER = 500


async def _die(scene: Scene, bot: BotProcess, *chats: Chat) -> list[str]:
    """Kill a process and start it again; return the replies of `chats` that stand in an outbox.

    The model must not be asked for them again. If one chat is named, wait until it is quiet.
    """
    await bot.kill()
    scene.heal()
    async with opened(scene.redis.url) as store:
        keys = [scene.keys_of(chat).turn for chat in chats or scene.day.chats]
        outboxes = await store.pipeline([("HGET", key, "outbox") for key in keys])
    said = [Outbox.from_bytes(outbox).said for outbox in outboxes if outbox]
    stored = frozenset(marker for text in said for marker in markers(text))
    asked = _times_asked(scene, stored)
    async with scene.resuming():
        await bot.start()
    assert not chats or await scene.settle(_QUIET_S, *chats)
    assert _times_asked(scene, stored) == asked, "the model was asked again"
    return said


def _times_asked(scene: Scene, wanted: frozenset[str]) -> int:
    """Return how many answers the model was asked for that name one of these markers."""
    asked = [request.asked.rpartition("\n\n")[2] for request in scene.model.log.chats]
    return sum(not wanted.isdisjoint(markers(text)) for text in asked)


async def _killed_while_it_grows(scene: Scene) -> None:
    """Kill a process some time after the first frame of a draft, or while it sends the answer."""
    bot = await STREAMING.provoke(scene)
    if scene.round % 2:
        scene.telegram.faults.add(SlowAnswer(0.6), method="sendMessage")
        bot = await BEING_SENT.come(scene)
    else:
        await asyncio.sleep(scene.random.uniform(0, _WRITTEN_S))
    await _die(scene, bot)


@dataclass(slots=True)
class _Talk:
    """One person's chat in one round; `marker` names the question that must be answered."""

    scene: Scene
    person: Person
    chat: Chat
    marker: str

    @classmethod
    def begin(cls, scene: Scene, first_id: int) -> "_Talk":
        person, chat = scene.rig.person(first_id + scene.round, "Eve")
        return cls(scene, person, chat, f"m{_FIRST_MARKER + scene.round}")

    @property
    def slow(self) -> str:
        """A question whose answer grows for a while."""
        return f"{self.marker} take your time"

    async def die(self) -> list[str]:
        """Kill the process that answers, and start it again; return as `_die` does."""
        bot = self.scene.worker_on(self.marker) or self.scene.bots[-1]
        return await _die(self.scene, bot, self.chat)

    async def history(self) -> list[Message]:
        """Return what is stored of the chat."""
        async with opened(self.scene.redis.url) as store:
            log = await store.call("XRANGE", self.scene.keys_of(self.chat).log, "-", "+")
        return [message_of(seq_of(entry), fields) for entry, fields in log]


async def _killed_in_an_edit(scene: Scene) -> None:
    """Kill a process at some time after the edit of an answered question, or in the last step."""
    talk = _Talk.begin(scene, 3000)
    asked = await talk.person.say(talk.chat, f"m{_FIRST_MARKER - 1} what do you say?")
    await talk.chat.wait_for_reply(after=asked)
    assert await scene.settle(_QUIET_S, talk.chat)
    before = len(scene.telegram.calls_to("editMessageText"))
    if scene.round % 4 == 3:
        scene.telegram.faults.add(SlowAnswer(0.6), method="editMessageText")
    await talk.person.edit(asked, talk.slow)
    if scene.round % 4 == 3:
        await scene.telegram.wait_for(
            lambda: len(scene.telegram.calls_to("editMessageText")) > before
        )
    else:
        await asyncio.sleep(scene.random.uniform(0, _WRITTEN_S))
    await talk.die()
    answer = answer_to(talk.slow)
    assert talk.chat.texts == parts_of(answer)
    assert [each.text for each in await talk.history()] == [talk.slow, answer]


async def _killed_in_a_stop(scene: Scene) -> None:
    """Kill a process right after Stop was pressed under its draft, or while it sends what it has.

    If Telegram delivers the stop again too late, the whole answer is sent. A part in doubt may be
    there twice.
    """
    talk = _Talk.begin(scene, 4000)
    frames = len(scene.telegram.calls_to("sendMessageDraft"))
    await talk.person.say(talk.chat, talk.slow)
    await scene.telegram.wait_for(lambda: len(scene.telegram.calls_to("sendMessageDraft")) > frames)
    sends = len(scene.telegram.calls_to("sendMessage"))
    if scene.round % 2:
        scene.telegram.faults.add(SlowAnswer(0.6), method="sendMessage")
    await talk.person.stop(talk.chat)
    if scene.round % 2:
        await scene.telegram.wait_for(lambda: len(scene.telegram.calls_to("sendMessage")) > sends)
    else:
        await asyncio.sleep(scene.random.uniform(0, _STOPPING_S))
    stored = await talk.die()
    assert len(set(talk.chat.texts)) == 1
    assert len(talk.chat.texts) <= 1 + len(stored)
    question, *answers = await talk.history()
    assert question.text == talk.slow
    said = answers[0].text if answers else ""
    [whole] = parts_of(answer_to(talk.slow))
    if said:
        mark = f"\n\n{sentence('stop.mark')}"
        assert talk.chat.texts[0] in (whole, *(part + mark for part in parts_of(said)))
    else:
        assert talk.chat.texts[0] == sentence("stop.before")


FAULTS = tuple(
    Fault(f"kill -9 {when}{where}", strike, stage, 20, sample, texts)
    for where, stage, sample in (("", Stage(), 1), (", web and workers", Stage(roles=MANY), 0))
    for when, strike, texts in (
        ("while an answer grows", _killed_while_it_grows, 4),
        ("while an edited question is answered", _killed_in_an_edit, 0),
        ("while a reply is stopped", _killed_in_a_stop, 0),
    )
)
