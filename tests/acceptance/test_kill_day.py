"""A day under `kill -9`: whenever the bot dies, no text is lost, doubled or out of order.

`RICORDO_KILL_SEED` draws another day and other moments.
"""

import asyncio
import os
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from random import Random
from time import monotonic

import pytest

from bot.playground.bot_api import Chat, Pace
from bot.turn.outbox import Outbox
from memory.keys import Conversation, ConversationKeys, Keys
from memory.log import message_of
from memory.messages import Message
from memory.redis_client import RedisClient
from tests.acceptance.kill_moments import Moment, draw_moments
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.scripted_day import Day, Echo, answer_to, markers, parts_of

SEED = int(os.environ.get("RICORDO_KILL_SEED", "1"))
KILLS = 50
TEXTS = 200


class Killer:
    """Kills the bot again and again and knows what each death leaves behind.

    `in_doubt` counts, by chat and text, the parts that may have been sent without being marked so:
    only these may be seen again. `in_time` counts the deaths at just their moment.

    Who was interrupted before the reply was stored is answered before the next death: a turn begun
    three times would be apologised for, by another promise.
    """

    def __init__(self, rig: Rig, day: Day, store: RedisClient) -> None:
        self.in_doubt: Counter[tuple[int, str]] = Counter()
        self.in_time = 0
        self._rig = rig
        self._day = day
        self._store = store
        self._interrupted: set[int] = set()

    async def live(self, moment: Moment, texts: int) -> None:
        """Start the bot, have something said before and after, and kill it at its moment."""
        await self._day.talk(texts // 2)
        if moment.is_early:
            await self._start_and_kill_early(moment)
            await self._day.talk(texts - texts // 2)
            return
        await self._rig.bot.start()
        await self._until_resumed()
        await self._day.repeat_something()
        if moment.fault:
            self._rig.telegram.faults.add(moment.fault, method="sendMessage")
        coming = asyncio.create_task(moment.come(self._rig))
        await self._day.talk(texts - texts // 2, wish=moment.wish)
        self.in_time += await coming
        await self._kill()

    async def _start_and_kill_early(self, moment: Moment) -> None:
        if moment.fault:
            self._rig.telegram.faults.add(moment.fault, method="getMe")
        coming = asyncio.create_task(moment.come(self._rig))
        await self._rig.bot.start(until="listening")
        self.in_time += await coming
        await self._kill()

    async def _kill(self) -> None:
        await self._rig.bot.kill()
        self._rig.telegram.faults.clear()
        await self._store.ping()  # what the dead had sent before is carried out by now
        for chat in self._day.chats:
            turn = await self._store.call("HGETALL", keys_of(self._rig, chat).turn)
            outbox = turn.get(b"outbox")
            if outbox:
                part = Outbox.from_bytes(outbox).parts[int(turn[b"sending"])]
                self.in_doubt[chat.id, part.text] += 1
            elif turn:
                self._interrupted.add(chat.id)

    async def _until_resumed(self) -> None:
        before = len(self._rig.telegram.calls)

        def is_resumed() -> bool:
            calls = self._rig.telegram.calls[before:]
            answered = {call.chat_id for call in calls if call.method == "sendMessage"}
            return self._interrupted <= answered

        await self._rig.telegram.wait_for(is_resumed)
        self._interrupted.clear()


@pytest.fixture
async def rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    async with open_rig(valkey, tmp_path, "webhook", Pace(longest_retry_s=0.1)) as opened:
        opened.model.responder = Echo()
        opened.environment["LEASE_S"] = "1"
        yield opened


@pytest.mark.timeout(400)
async def test_a_day_with_50_kills_loses_doubles_and_reorders_nothing(
    rig: Rig, store: RedisClient
) -> None:
    began, random = monotonic(), Random(SEED)
    day = Day(rig, random)
    killer = Killer(rig, day, store)
    for number, moment in enumerate(draw_moments(random, KILLS)):
        await killer.live(moment, 4 if number < KILLS - 10 else 3)
    await _finish(rig, day)

    histories = [await _history(rig, store, chat) for chat in day.chats]
    told = [_markers_told(history) for history in histories]
    seen = Counter((chat.id, reply.text) for chat in day.chats for reply in chat.replies)
    resends = seen - Counter(dict.fromkeys(seen, 1))
    _report(killer, day, told, resends, seconds=monotonic() - began)

    assert len(day.lines) == TEXTS
    assert told == [day.said_in(chat) for chat in day.chats]
    for chat, history in zip(day.chats, histories, strict=True):
        _check_history(chat, history)
        expected = {part for message in history[1::2] for part in parts_of(message.text)}
        assert {reply.text for reply in chat.replies} == expected
    assert resends <= killer.in_doubt
    assert resends.total() <= KILLS
    assert rig.model.log.refusals == []


async def _finish(rig: Rig, day: Day) -> None:
    """Let the day end in peace, everything answered and learned."""
    before = len(rig.bot.log)
    await rig.bot.start()
    await day.say_goodbye()
    await rig.telegram.wait_for(day.is_answered)

    def is_learned() -> bool:
        last = {line.get("conversation"): line["event"] for line in rig.bot.log[before:]}
        return all(last.get(Conversation.of_chat(c.id).tag) == "learned" for c in day.chats)

    # A learner that was killed keeps others out until its lease is over.
    await rig.bot.wait_until(is_learned, timeout_s=60)
    assert await rig.bot.stop() == 0


async def _history(rig: Rig, store: RedisClient, chat: Chat) -> list[Message]:
    """Return what is stored of a chat; nothing else may be left of it but vectors."""
    keys = keys_of(rig, chat)
    left = [keys.mailbox, keys.turn, keys.lease]
    log, vectors, *exist = await store.pipeline(
        [("XRANGE", keys.log, "-", "+"), ("XRANGE", keys.vectors, "-", "+")]
        + [("EXISTS", key) for key in left]
    )
    assert exist == [0, 0, 0]
    assert [entry for entry, _ in vectors] == [entry for entry, _ in log]
    return [message_of(entry, fields) for entry, fields in log]


def _markers_told(history: list[Message]) -> list[str]:
    return [m for message in history if message.role == "user" for m in markers(message.text)]


def _check_history(chat: Chat, history: list[Message]) -> None:
    """Questions and their answers in turn, without a gap, as they stand in the chat."""
    turns = len(history) // 2
    assert [message.role for message in history] == ["user", "assistant"] * turns
    assert [message.seq for message in history] == list(range(1, 2 * turns + 1))
    assert [m.exchange for m in history] == [n for n in range(1, turns + 1) for _ in range(2)]
    for question, answer in zip(history[::2], history[1::2], strict=True):
        assert answer.text == answer_to(question.text)
        shown = [chat.message(message_id) for message_id in answer.message_ids]
        assert [message and message.text for message in shown] == parts_of(answer.text)
        if chat.kind != "private":
            first = shown[0]
            assert first
            assert first.reply_to
            assert first.reply_to.id == question.message_ids[-1]


def _report(
    killer: Killer,
    day: Day,
    told: list[list[str]],
    resends: "Counter[tuple[int, str]]",
    *,
    seconds: float,
) -> None:
    said = Counter(line.marker for line in day.lines)
    counts = Counter(marker for markers_told in told for marker in markers_told)
    columns = {
        "seed": SEED,
        "kills": KILLS,
        "at their moment": killer.in_time,
        "updates": said.total(),
        "answered once": sum(count == 1 for count in counts.values()),
        "lost": (said - counts).total(),
        "doubled": (counts - said).total(),
        "out of order": sum(markers_told != sorted(markers_told) for markers_told in told),
        "parts in doubt": killer.in_doubt.total(),
        "resends": resends.total(),
        "seconds": round(seconds),
    }
    print("\n" + " | ".join(f"{name} {value}" for name, value in columns.items()))  # noqa: T201 - the figures are the result


def keys_of(rig: Rig, chat: Chat) -> ConversationKeys:
    return Keys(rig.telegram.bot.id).conversation(Conversation.of_chat(chat.id))
