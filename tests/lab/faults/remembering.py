"""Processes that die before any step of learning, reminding and forgetting, in all kinds of chats.

A step is a request to Redis. Each strike has a chat of its own and stops before one step, in the
next round before the next one. It judges its own chat: every fact once, every ✍ set, every reminder
once or in doubt, none of them lost, and no word of what was forgotten.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from time import time

import orjson

from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from memory.work.item import WorkItem
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.buttons import ERASE
from tests.acceptance.memory_model import Batch, gullible, is_internal
from tests.acceptance.planting import stored_memory
from tests.acceptance.scripted_day import Echo
from tests.acceptance.sentences import sentence
from tests.acceptance.test_learned_marks import LEARNED
from tests.acceptance.test_reminders import let_be_due
from tests.lab.faults.fault import Fault
from tests.lab.faults.moments import MomentMissed, Steps
from tests.lab.faults.scene import MANY, Scene, Stage
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.model_api import ChatRequest, Reply, tool_call
from tests.stored import everything_stored
from tests.valkey import opened

_QUIET_S = 120
_PAUSE_S = 0.05
_FIRST_MARKER = 600
_PLACES = ("private", "group", "topic")
_CRON = "0 9 * * *"


class _Model(Echo):
    """Sets a reminder if it is asked to, and believes every message that it learns from."""

    async def respond(self, request: ChatRequest) -> Reply:
        if is_internal(request):
            return Reply(orjson.dumps(gullible(Batch.of(request))).decode())
        _, reminds, what = request.asked.rpartition("remind me ")
        if reminds and request.messages[-1].role == "user":
            is_daily, about = what.startswith("daily "), what.split()[-1]
            when = {"cron": _CRON} if is_daily else {"in_minutes": 60}
            call = tool_call(
                "set_reminder", text=f"Boat-{about}", time_zone="Europe/Berlin", **when
            )
            return Reply(tool_calls=(call,))
        return await super().respond(request)


@dataclass(slots=True)
class _Place:
    """A person who writes in a chat of their own, a group, or a topic, in one round."""

    scene: Scene
    person: Person
    chat: Chat
    topic: int
    number: int
    died_before: str = ""
    """The request that a process did not come to."""

    @classmethod
    def open(cls, scene: Scene, first_id: int) -> "_Place":
        scene.model.responder = _Model()
        kind, number = _PLACES[scene.round % len(_PLACES)], _FIRST_MARKER + scene.round
        person, chat = scene.rig.person(first_id + scene.round, "Eve")
        topic = 0
        if kind != "private":
            is_forum = kind == "topic"
            chat = scene.telegram.group(f"Club {number}", [], admins=[person], forum=is_forum)
            topic = chat.topic("Boats").id if is_forum else 0
        return cls(scene, person, chat, topic, number)

    @property
    def scope(self) -> Scope:
        return Scope.of_chat(self.chat.id, self.topic)

    @property
    def keys(self) -> Keys:
        return self.scene.rig.keys

    async def say(self, text: str) -> Message:
        topic = self.chat.topics.get(self.topic)
        us = "" if self.chat.kind == "private" else f"@{self.scene.telegram.bot.username} "
        return await self.person.say(self.chat, f"{us}m{self.number} {text}", topic=topic)

    async def until(self, found: Callable[[RedisClient], Awaitable[bool]], what: str) -> None:
        """Wait until something is found in Redis; learning that was put off is due at once."""
        try:
            async with opened(self.scene.redis.url) as store, asyncio.timeout(_QUIET_S):
                while not await found(store):
                    await store.call("ZADD", self.keys.learning, "XX", "LT", time(), self.scope.tag)
                    await asyncio.sleep(_PAUSE_S)
        except TimeoutError:
            raise AssertionError(f"{self.scope.tag}, {self.died_before}: {what}") from None

    async def killed_at_a_step(
        self,
        fault: str,
        begins_with: str,
        acts: Callable[[], Coroutine[None, None, None]],
        *names: bytes,
    ) -> BotProcess:
        """Let somebody act, and kill the process that comes to this round's step.

        Its requests name the conversation, its person, or one of `names`. Raise `MomentMissed` if
        there is no such step.
        """
        here, facts = self.scope.tag, self.scope.facts_scope.tag
        tags = (f"{{{here}}}".encode(), f"{here}|".encode(), f"{{{facts}}}".encode())
        steps = Steps(fault, (*tags, *names), begins_with)
        if not (bot := await steps.killed(self.scene, acts())):
            raise MomentMissed(fault)
        self.died_before = steps.newest
        return bot

    async def is_learned(self, store: RedisClient) -> bool:
        """Return whether one message and its answer were learned and the message is marked."""
        keys = self.keys.scope(self.scope)
        asked = [("XLEN", keys.log), ("XLEN", keys.vectors), ("HGET", keys.meta, "marked")]
        log, vectors, marked = await store.pipeline(asked)
        return 2 == log == vectors and bool(marked)

    async def end_leases(self) -> None:
        """Let the leases of a dead learner and of a dead job end, as after 15 and 30 s."""
        async with opened(self.scene.redis.url) as store:
            jobs = await store.call("KEYS", "*{j:*}:lease")
            await store.call("DEL", self.keys.learner(self.scope), *jobs)

    def check_answer(self) -> None:
        """Check that the message was answered, and not more often than once and once in doubt."""
        answers = [each.text for each in self.chat.replies if "Heard" in each.text]
        assert 1 <= len(answers) <= 2, answers


async def _killed_while_learning(scene: Scene, *, fault: str) -> None:
    """Kill a process before a step of learning, from the commit until the message is marked."""
    place = _Place.open(scene, 5000)
    said: list[Message] = []
    calls = len(scene.telegram.calls_to("setMessageReaction"))

    async def talk() -> None:
        said.append(await place.say(f"My boat is called Boat-{place.number}"))
        await place.until(place.is_learned, "was not learned")

    bot = await place.killed_at_a_step(fault, "commit", talk)
    await place.end_leases()
    await bot.start()
    await place.until(place.is_learned, "was not learned or not marked after a death")
    learned = await stored_memory(scene.rig, place.scope.facts_scope)
    facts = [each.text for each in learned.facts]
    assert facts == [f"Their boat is Boat-{place.number}."], facts
    assert place.chat.reaction(said[0], scene.telegram.bot) == LEARNED
    marks = scene.telegram.calls_to("setMessageReaction")[calls:]
    assert 1 <= len(marks) <= 2, "a death after a reaction may repeat it once"
    place.check_answer()


async def _killed_while_reminding(scene: Scene, *, fault: str) -> None:
    """Kill a process before a step of a reminder, from the outbox that sets it to its close."""
    place = _Place.open(scene, 6000)
    is_daily = bool(scene.round % 2)
    name = place.keys.scope(place.scope).work
    was_due = False

    async def stored(store: RedisClient) -> list[WorkItem]:
        found = await store.call("HGETALL", name)
        return [WorkItem.of_stored(id_.decode(), value) for id_, value in found.items()]

    async def is_closed(store: RedisClient) -> bool:
        nonlocal was_due
        open_ = await stored(store)
        if not was_due and open_:
            await let_be_due(scene.rig, place.chat, topic=place.topic)
            was_due = True
            return False
        if not was_due or not any("⏰ Boat" in each.text for each in place.chat.replies):
            return False
        if is_daily:
            return [each.sends for each in open_] == [0] and open_[0].due > time()
        return not open_

    async def ask() -> None:
        await place.say(f"remind me {'daily ' if is_daily else ''}{place.number}")
        await place.until(is_closed, "its reminder was not closed")

    bot = await place.killed_at_a_step(fault, "outbox", ask)
    async with opened(scene.redis.url) as store:
        was_sent = any(each.sends for each in await stored(store))
    await place.end_leases()
    await bot.start()
    await place.until(is_closed, "its reminder was lost after a death")
    sent = [each.text for each in place.chat.replies if each.text.startswith("⏰ Boat")]
    assert 1 <= len(sent) <= 1 + was_sent, sent
    place.check_answer()


async def _killed_while_forgetting(scene: Scene, *, fault: str) -> None:
    """Kill a process before a step of `/forget`, from the press of its button to the receipt.

    In turns it forgets a whole person, and one message.
    """
    place = _Place.open(scene, 8000)
    is_person, word = scene.round % 2, f"Boat-{place.number}"
    said = await place.say(f"My boat is called {word}")
    await place.until(place.is_learned, "was not learned")
    topic, reply_to = place.chat.topics.get(place.topic), None if is_person else said
    asked = await place.person.say(place.chat, "/forget", topic=topic, reply_to=reply_to)
    question = await place.chat.wait_for_reply(after=asked)
    before = (question.text, sentence("forget.started"))
    key, counts = ("done", {"conversations": 1}) if is_person else ("message_done", {})

    def is_done() -> bool:
        return question.now.text not in before

    async def confirm() -> None:
        await place.person.press(question, ERASE)
        await scene.telegram.wait_for(is_done, _QUIET_S)

    bot = await place.killed_at_a_step(
        fault, "", confirm, f"{{u:{place.person.id}}}".encode(), b"{j:"
    )
    await place.end_leases()
    await bot.start()
    await scene.telegram.wait_for(is_done, _QUIET_S)
    receipt = sentence(f"forget.{key}", **counts, messages=2, vectors=2, learned=1)
    assert question.now.text == receipt, place.died_before
    assert word.encode() not in await everything_stored(scene.redis.url), place.died_before
    place.check_answer()


_SETTINGS = {"learn": "facts", "learn_every_turns": 1}

FAULTS = tuple(
    Fault(name, partial(strike, fault=name), stage, 45, 0, texts=0)
    for where, stage in (
        ("", Stage(settings=_SETTINGS, is_tapped=True)),
        (", web and workers", Stage(roles=MANY, settings=_SETTINGS, is_tapped=True)),
    )
    for name, strike in (
        (f"kill -9 before any step of learning{where}", _killed_while_learning),
        (f"kill -9 before any step of reminding{where}", _killed_while_reminding),
        (f"kill -9 before any step of forgetting{where}", _killed_while_forgetting),
    )
)
