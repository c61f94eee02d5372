"""Compares `/usage` with what the model's server billed, over many turns with kills.

    python -m tests.lab.billing_day [--turns 300] [--people 6] [--kills 12] [--anywhere]

Several people talk at the same time, with tools, vectors and learning. The bot is repeatedly killed
(`kill -9`) while it waits for answers, and started again. The output is one JSON object: the tokens
of all usage blocks that the server sent, what `/usage` shows, and the difference, which is 0. With
`--anywhere` a kill may also come between a usage block and its write to Redis; then the difference
is what such kills lose.
"""

import argparse
import asyncio
import json
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import Rig, open_rig
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import ChatRequest, ModelApiServer, Reply, Responder, tool_call
from tests.valkey import ValkeyServer

ADMIN_ID = 1009
THINKING_S = 0.3
_QUIET_S = 3.0
_SETTLED_S = 1.5
"""Long enough for running embedding requests to be answered and counted."""
_ANSWERED_S = 90.0


class Pausing:
    """Answers as another responder does, but only while `going` is set."""

    def __init__(self, responder: Responder) -> None:
        self._responder = responder
        self.going = asyncio.Event()
        self.going.set()

    async def respond(self, request: ChatRequest) -> Reply:
        """Return the answer to a request."""
        reply = await self._responder.respond(request)
        return replace(reply, gate=self.going)


async def compare(turns: int, people: int, kills: int, *, anywhere: bool) -> dict[str, int]:
    """Return both sums and their difference."""
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as valkey:
        async with open_rig(valkey.url, Path(folder), "webhook") as rig:
            settled_s = 0 if anywhere else _SETTLED_S
            return await _talk(rig, turns, people, settled_s, kills)


async def _talk(rig: Rig, turns: int, people: int, settled_s: float, kills: int) -> dict[str, int]:
    calls = (tool_call("calculate", expression="2+2"),)
    rig.script.on(_has_no_result, Reply(tool_calls=calls, delay_s=THINKING_S))
    rig.script.on("Note", Reply("Noted.", delay_s=THINKING_S))
    rig.model.responder = pausing = Pausing(remember_with(rig))
    await rig.start(admin_user_ids=ADMIN_ID, learn="state", learn_every_turns=4)
    guests = [rig.person(2000 + number, f"P{number}") for number in range(people)]
    talking = [
        asyncio.create_task(_one(*guest, turns // people, number))
        for number, guest in enumerate(guests)
    ]
    killed = 0
    while killed < kills and not all(task.done() for task in talking):
        so_far, enough = len(rig.model.log.calls), 2 * turns // kills
        await rig.model.wait_for(lambda _: True, count=so_far + enough, timeout_s=120)
        if settled_s:
            pausing.going.clear()
            await asyncio.sleep(settled_s)
        await rig.restart()
        pausing.going.set()
        killed += 1
    await asyncio.gather(*talking)
    await _wait_until_quiet(rig.model)
    return {"turns": turns, "kills": killed, **await _sums(rig, guests)}


async def _sums(rig: Rig, guests: Sequence[tuple[Person, Chat]]) -> dict[str, int]:
    """Return what was billed, what the bot shows, and the difference."""
    ada, adas = rig.person(ADMIN_ID, "Ada")
    reply = await rig.ask(ada, adas, "/usage")
    found = re.search(r"The whole bot, this month: (\d+) tokens", reply.text)
    shown = int(found[1]) if found else 0
    billed = sum(usage.prompt + usage.completion for usage in rig.model.log.billed)
    return {
        "answers": sum(len(chat.replies) for _, chat in guests),
        "calls": len(rig.model.log.billed),
        "billed": billed,
        "shown": shown,
        "difference": billed - shown,
    }


async def _one(person: Person, chat: Chat, turns: int, number: int) -> None:
    for turn in range(turns):
        question = "What is the sum?" if turn % 3 == number % 3 else "Note this"
        said = await person.say(chat, f"{question} ({turn})")
        await chat.wait_for_reply(after=said, timeout_s=_ANSWERED_S)


def _has_no_result(request: ChatRequest) -> bool:
    return "the sum" in request.asked and request.messages[-1].role != "tool"


async def _wait_until_quiet(server: ModelApiServer) -> None:
    """Return when the server has had no request for a while."""
    count = -1
    while count != len(server.log.calls):
        count = len(server.log.calls)
        await asyncio.sleep(_QUIET_S)


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--turns", type=int, default=300)
    parser.add_argument("--people", type=int, default=6)
    parser.add_argument("--kills", type=int, default=12)
    parser.add_argument("--anywhere", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(
        compare(options.turns, options.people, options.kills, anywhere=options.anywhere)
    )
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
