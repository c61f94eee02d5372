"""Measures how long people wait while the first model is dead and a second one answers.

    python -m tests.lab.dead_model [--minutes 10] [--people 20] [--silent]

The first model refuses with 500, or with `--silent` never answers. The second takes 0.5 s. The
output is one JSON object: how much longer than the second model's own time answers took after the
first failure, and how often the first model was asked meanwhile. Then the first model works again,
and the object says which model answers after 45 s.
"""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from time import monotonic

from tests.acceptance.rig import Rig, open_rig
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Break, ModelApiServer, Reply, Scripted, server_error
from tests.valkey import ValkeyServer

OWN_S = 0.5
_PAUSE_S = 1.0
_WELL_AGAIN_S = 45.0


async def measure(minutes: float, people: int, *, silent: bool) -> dict[str, object]:
    """Return how long answers took, and how often each model was asked."""
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as valkey:
        async with (
            ModelApiServer(Scripted(Reply("Spare.", delay_s=OWN_S))) as spare,
            open_rig(valkey.url, Path(folder), "webhook") as rig,
        ):
            rig.model.faults.add(Break.HANG if silent else server_error(), times=None)
            await rig.start(
                fallback_model="spare",
                fallback_base_url=spare.base_url,
                model_timeout_s=10,
                openai_embedding_model="off",
            )
            return await _talk(rig, spare, minutes, people)


async def _talk(rig: Rig, spare: ModelApiServer, minutes: float, people: int) -> dict[str, object]:
    guests = [rig.person(2000 + number, f"P{number}") for number in range(people)]
    began = monotonic()
    await rig.ask(*guests[0], "Are you there?")
    first_answer_s = monotonic() - began
    until = monotonic() + 60 * minutes
    rounds = await asyncio.gather(*(_one(*guest, rig, until) for guest in guests))
    beyond = sorted(each - OWN_S for one in rounds for each in one)
    asked = len(rig.requests)
    rig.model.faults.clear()
    await asyncio.sleep(_WELL_AGAIN_S)
    last = await rig.ask(*guests[0], "Who is it now?")
    return {
        "first answer, s": round(first_answer_s, 3),
        "answers": len(beyond),
        "beyond the second's own time, s": {
            "median": round(beyond[len(beyond) // 2], 3),
            "p99": round(beyond[int(len(beyond) * 0.99)], 3),
            "longest": round(beyond[-1], 3),
        },
        "asked the first": asked,
        "asked the second": len(spare.log.chats),
        "after 45 s": last.text,
    }


async def _one(person: Person, chat: Chat, rig: Rig, until: float) -> list[float]:
    took = []
    while monotonic() < until:
        began = monotonic()
        await rig.ask(person, chat, "Note this")
        took.append(monotonic() - began)
        await asyncio.sleep(_PAUSE_S)
    return took


def main() -> None:
    """Print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--people", type=int, default=20)
    parser.add_argument("--silent", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(options.minutes, options.people, silent=options.silent))
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
