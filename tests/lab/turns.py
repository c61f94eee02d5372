"""Measures the cost of a turn: CPU, Redis traffic, start time and resident memory.

    python -m tests.lab.turns

The bot and a bot without memory run as processes of their own. They poll the same local Telegram
and stream the same answers from the same local model; both servers run in this process. Do not use
the machine meanwhile. The output is one JSON object. `ricordo` asks its model over chat
completions, `over_responses` over the Responses API. `cpu_ms_a_turn` is user and system time of
the bot's process, learning included; `streamed` compares it with and without drafts. `redis` has
medians of turns at the given position of a conversation, after a round of learning that warms the
process: round trips and bytes, learning apart, which has means. `server_bytes` is the mean of all
that passes in a turn and the pause after it, also what a process without work asks.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import fmean, median

from bot.assistant import behaviors_of
from bot.model.embedder import OpenAIEmbedder
from bot.model.openai_client import open_client
from memory.behaviors.learning_behavior import LearningBehavior
from memory.learning.progress import learner_in
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.fields import Watermark
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.pages import wait_until_ready
from tests.acceptance.rig import EMBEDDINGS, KEY, Rig, open_rig
from tests.bot.features.services import services_of
from tests.lab.baseline_bot import BASELINE
from tests.lab.figures import cpu_s, resident_mb
from tests.lab.made_up import made_up, short_texts
from tests.lab.plain_model import REPLY, Model
from tests.lab.recall import OPTIONS, append_all
from tests.lab.scripted_models import ScriptedInternalModel, Tape
from tests.lab.wire_tap import RoundTrip, Traffic, WireTap, is_over
from tests.servers.bot_api import Chat, Person
from tests.settings import Settings
from tests.valkey import ValkeyServer, opened

STARTS = 3
PEOPLE = 24
WARMING_TURNS = 2
TURNS = 16
AT_TURNS = (50, 500, 5_000)
ROUND_TURNS = 4  # a round of learning follows so many turns (`LEARN_EVERY_TURNS`)
STEADY_TURNS = 2 * ROUND_TURNS
CHAT_PAUSE_S = 1.5  # longer than the rate limit of a chat, so that no steady turn waits for it
PATIENCE_S = 180
DEFAULTS: Mapping[str, str] = {"OPENAI_MODEL": "gpt-benchmark", "OPENAI_API": "chat"}


async def load(rig: Rig, bot: BotProcess, first_person: int) -> dict[str, float]:
    """Let many people talk at the same time; return the cost of a turn."""
    people = [rig.person(first_person + at, f"Person {at}") for at in range(PEOPLE)]
    texts = short_texts(WARMING_TURNS + TURNS)
    await asyncio.gather(*(talk(*each, texts[:WARMING_TURNS]) for each in people))
    await _quiet(bot)
    before_s, began = cpu_s(bot.pid), time.perf_counter()
    await asyncio.gather(*(talk(*each, texts[WARMING_TURNS:]) for each in people))
    seconds = time.perf_counter() - began
    await _quiet(bot)
    turns = PEOPLE * TURNS
    return {
        "turns": turns,
        "turns_a_second": round(turns / seconds, 1),
        "cpu_ms_a_turn": round(1000 * (cpu_s(bot.pid) - before_s) / turns, 1),
        "resident_mb": resident_mb(bot.pid),
    }


async def starts(rig: Rig) -> dict[str, float]:
    """Return the seconds until `/readyz` answers 200 after a start, and the CPU seconds."""
    seconds, used_s = [], []
    for _ in range(STARTS):
        began = time.perf_counter()
        async with rig.bot:
            await wait_until_ready(rig)
            seconds.append(time.perf_counter() - began)
            used_s.append(cpu_s(rig.bot.pid))
    return {"s": round(median(seconds), 2), "cpu_s": round(median(used_s), 2)}


async def talk(person: Person, chat: Chat, texts: Sequence[str]) -> None:
    """Write one text after the other, each after the answer to the last."""
    for text in texts:
        said = await person.say(chat, text)
        reply = await chat.wait_for_reply(after=said, timeout_s=PATIENCE_S)
        assert reply.text == REPLY, reply.text


async def steady_turns(rig: Rig, valkey: ValkeyServer) -> dict[str, object]:
    """Return the Redis traffic of a turn in a warm process, by the length of the history."""
    figures: dict[str, object] = {}
    async with WireTap(valkey.port) as tap, rig.another_bot(redis_url=tap.url):
        for number, turns in enumerate(AT_TURNS):
            person, chat = rig.person(9_000 + number, "Person")
            await remember(rig, Scope.of_chat(chat.id), person, turns)
            seen = []
            for text in short_texts(ROUND_TURNS + STEADY_TURNS):
                begun = len(tap.passed)
                await talk(person, chat, [text])
                await tap.wait_for(partial(is_over, tap, begun), PATIENCE_S)
                await asyncio.sleep(CHAT_PAUSE_S)  # a round of learning may follow
                trips = tap.passed[begun:]
                nbytes = sum(trip.nbytes for trip in trips)
                seen.append((Traffic.of(trips, person.id), nbytes))
            figures[str(turns)] = _steady(seen[ROUND_TURNS:])
    return figures


async def remember(rig: Rig, conversation: Scope, person: Person, turns: int) -> None:
    """Store a conversation of so many turns with its vectors, as if all of it had been learned."""
    async with (
        opened(rig.environment["REDIS_URL"]) as client,
        open_client(rig.model.base_url, KEY, PATIENCE_S) as embeddings,
    ):
        embedder = OpenAIEmbedder(embeddings, EMBEDDINGS, None, PATIENCE_S)
        memory = Memory(client, rig.telegram.bot.id, await TokenCounter.load(), embedder, OPTIONS)
        said = [
            replace(each, sender_id=person.id if each.role == "user" else 0, sender_name="")
            for each in made_up(2 * turns).messages
        ]
        await append_all(memory, conversation, said)
        await memory.learn(conversation)
        await _have_learned(memory, conversation, len(said))


async def _have_learned(memory: Memory, conversation: Scope, newest: int) -> None:
    """Set the watermark of every behavior to the newest message."""
    internal = ScriptedInternalModel(Tape(time.monotonic), 0)
    services = services_of(memory, Settings(_env_file=None), internal=internal)
    behaviors = behaviors_of(services)
    here = await memory.scopes.read(conversation)
    for behavior in [each for each in behaviors.behaviors if isinstance(each, LearningBehavior)]:
        scope = conversation.facts_scope if behavior.is_personal else conversation
        learner = learner_in(scope, behavior.name, here)
        scope_memory = await memory.scopes.read(scope)
        await memory.scopes.write(scope_memory, Write(fields=[Watermark(learner, newest)]))


async def _quiet(bot: BotProcess) -> None:
    """Wait until the work after a turn is done, that is, until almost no CPU time is used."""
    used_s = -1.0
    while cpu_s(bot.pid) - used_s > 0.02:
        used_s = cpu_s(bot.pid)
        await asyncio.sleep(1)


def _steady(seen: Sequence[tuple[Traffic, int]]) -> dict[str, object]:
    def of(part: str) -> dict[str, object]:
        trips: list[Sequence[RoundTrip]] = [getattr(traffic, part) for traffic, _ in seen]
        typical = fmean if part == "learning" else median
        return {
            "round_trips": typical(map(len, trips)),
            "bytes": round(typical(sum(trip.nbytes for trip in each) for each in trips)),
        }

    return {
        "intake": of("intake"),
        "turn": of("turn"),
        "learning": of("learning"),
        "steps": seen[-1][0].steps,
        "server_bytes": round(fmean(total for _, total in seen)),
    }


async def streamed(rig: Rig) -> dict[str, float]:
    """Return the CPU of a turn whose answer takes a second, in ms, with and without drafts."""
    rig.model.responder = Model(pause_s=1 / 60)
    cpu_ms = {}
    for people, stream in ((4_000, "off"), (5_000, "drafts")):
        async with rig.another_bot(stream=stream) as bot:
            cpu_ms[stream] = (await load(rig, bot, people))["cpu_ms_a_turn"]
    return {**cpu_ms, "ratio": round(cpu_ms["drafts"] / cpu_ms["off"], 2)}


async def measure(rig: Rig, valkey: ValkeyServer) -> dict[str, object]:
    rig.model.responder = Model()
    redis = await steady_turns(rig, valkey)  # first: who talked is learned from later
    async with rig.another_bot(module=BASELINE) as bot:
        without_memory = await load(rig, bot, 1_000)
    start = await starts(rig)
    async with rig.another_bot() as bot:
        ricordo = await load(rig, bot, 2_000)
    async with rig.another_bot(openai_api="responses") as bot:
        over_responses = await load(rig, bot, 3_000)
    return {
        "ricordo": ricordo,
        "over_responses": over_responses,
        "without_memory": without_memory,
        "cpu_ratio": round(ricordo["cpu_ms_a_turn"] / without_memory["cpu_ms_a_turn"], 2),
        "start": start,
        "redis": redis,
        "streamed": await streamed(rig),
        "load_average": os.getloadavg()[0],
    }


async def main() -> None:
    """Measure on a new Valkey."""
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as valkey:
        async with open_rig(valkey.url, Path(scratch), settings=DEFAULTS) as rig:
            figures = await measure(rig, valkey)
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
