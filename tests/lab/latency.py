"""Measures how long a person waits until the model is asked and until they see the first words.

    python -m tests.lab.latency

Three bots talk with one person at a time over the same local Telegram and the same local model:
Ricordo, Ricordo with `OPENAI_EMBEDDING_MODEL=off`, and a bot without memory. Do not use the machine
meanwhile. The output is one JSON object, with medians and 95th percentiles in ms:

- `until_acknowledged`: from when the update is there until the poll that acknowledges it.
- `until_asked`: from that poll until the model has the request. The first two bots differ by the
  time of the embedding. The bot without memory acknowledges before it has read the update.
- `until_shown`: from the first token of the answer until the first frame of the draft is there.
- `requests_a_turn`: 1 if nothing is dropped. `in_a_row`: the same and the answers when a second
  message follows 0.2 s after the first, before anything is shown.
"""

import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

from tests.lab.bots import KEY, PATIENCE_S, REPLY, Model, World, running
from tests.servers.bot_api import BotApiServer, Chat, Person
from tests.servers.model_api import ChatRequest, Dialect, ModelApiServer, Reply
from tests.valkey import ValkeyServer

WARMING_TURNS = 3
TURNS = 25
IN_A_ROW = 5
FOLLOWS_S = 0.2
THINKING_S = 0.5
"""How long the model is silent before its first token, so that a second message can follow."""
_PIECE_S = 1 / 60
_PAUSE_S = 1.2
"""Longer than the rate limit of a chat."""


class TimedModel(Model):
    """Notes when it was asked for each answer."""

    def __init__(self) -> None:
        self.asked_at: list[float] = []

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the answer, which begins after a while."""
        if request.response_format != "text":
            return await super().respond(request)
        self.asked_at.append(time.time())
        return Reply(REPLY, thinking_s=THINKING_S, chunk_delay_s=_PIECE_S)


async def talk(world: World, model: TimedModel, person: Person, chat: Chat) -> dict[str, object]:
    """Ask one question after the other, then in a row; return what the person waited for."""
    until_acknowledged, until_asked, until_shown = list[float](), list[float](), list[float]()
    requests = 0
    for turn in range(WARMING_TURNS + TURNS):
        await asyncio.sleep(_PAUSE_S)
        frames, asked = len(world.telegram.calls_to("sendMessageDraft")), len(model.asked_at)
        began = time.time()
        said = await person.say(chat, f"How are you on day {turn}?")
        await chat.wait_for_reply(after=said, timeout_s=PATIENCE_S)
        if turn < WARMING_TURNS:
            continue
        requests += len(model.asked_at) - asked
        polls = (call.at for call in world.telegram.calls_to("getUpdates") if call.at > began)
        acknowledged = next(polls)
        until_acknowledged.append(acknowledged - began)
        until_asked.append(model.asked_at[asked] - acknowledged)
        shown = world.telegram.calls_to("sendMessageDraft")[frames:]
        until_shown += [frame.at - model.asked_at[asked] - THINKING_S for frame in shown[:1]]
    return {
        "until_acknowledged": _milliseconds(until_acknowledged),
        "until_asked": _milliseconds(until_asked),
        "until_shown": _milliseconds(until_shown),
        "requests_a_turn": requests / TURNS,
        "in_a_row": await in_a_row(model, person, chat),
    }


async def in_a_row(model: TimedModel, person: Person, chat: Chat) -> dict[str, float]:
    """Send two messages in quick succession again and again; return requests and answers."""
    asked, replies = len(model.asked_at), len(chat.replies)
    for number in range(IN_A_ROW):
        await asyncio.sleep(_PAUSE_S)
        await person.say(chat, f"One more thing, {number}:")
        await asyncio.sleep(FOLLOWS_S)
        said = await person.say(chat, "how is the weather?")
        await chat.wait_for_reply(after=said, timeout_s=PATIENCE_S)
    await asyncio.sleep(2 * _PAUSE_S)
    return {
        "requests": (len(model.asked_at) - asked) / IN_A_ROW,
        "answers": (len(chat.replies) - replies) / IN_A_ROW,
    }


def _milliseconds(seconds: list[float]) -> dict[str, float]:
    if not seconds:
        return {}
    ms = [1000 * each for each in seconds]
    return {"median": round(median(ms), 1), "p95": round(quantiles(ms, n=20)[-1], 1)}


async def main() -> None:
    """Measure on a new Valkey."""
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as valkey:
        answers = TimedModel()
        model = ModelApiServer(answers, dialect=Dialect(api_key=KEY))
        async with BotApiServer() as telegram, model:
            world = World(telegram, model, valkey, Path(scratch))
            lexical = replace(world, embeddings="off")
            bots = {
                "ricordo": (world, "bot"),
                "without_embedding": (lexical, "bot"),
                "without_memory": (world, "tests.lab.baseline_bot"),
            }
            figures: dict[str, object] = {}
            for number, (name, (around, module)) in enumerate(bots.items()):
                [(person, chat)] = around.people(1_000 + number, 1)
                async with running(around, module, valkey.url):
                    figures[name] = await talk(around, answers, person, chat)
    figures["load_average"] = os.getloadavg()[0]
    sys.stdout.write(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
