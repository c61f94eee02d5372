"""Measures the bot under load, as one web process and several workers on one Redis.

    python -m tests.lab.load

The output is one JSON object. It takes less than eight minutes. Do not use the machine meanwhile:
`everything_else` says how much of a core other processes used.

- `acknowledgement`: the time from when an update is due until it is acknowledged, at 300 a second
  over 40 connections. The schedule is made beforehand, so a late answer does not delay later
  updates. Two cores cannot answer so many, so the workers are fully busy meanwhile. `queue`: the
  time from the acknowledgement until the bot shows "typing", at a rate that the workers can handle.
- `workers`: turns a second if there are more people than slots and each continues once answered;
  the cost of a turn; and the same for the bot without memory.
"""

import asyncio
import json
import os
import platform
import sys
from bisect import bisect
from collections import defaultdict
from http import HTTPStatus
from itertools import cycle, islice

from bot.turn.worker import MAX_CONCURRENT_TURNS
from tests.lab.figures import milliseconds
from tests.lab.fleet import CORES, Fleet, Reading, baseline, fleet
from tests.lab.lean_telegram import Update
from tests.lab.made_up import short_texts
from tests.lab.people import Deliver, arrivals, post_on_time, talking

SLOTS = MAX_CONCURRENT_TURNS

UPDATES_A_SECOND = 300
CHATS = 2_000
OFFERED_S = 30
WARMING_S = 2

MODERATE_A_SECOND = 12
MODERATE_S = 40
MODERATE_CHATS = 300
LAST_TURNS_S = 3

WORKERS = (1, 2, 4)
PEOPLE_A_SLOT = 1.5
WARMING_TALK_S = 8
TALK_S = 20
BASELINE_PEOPLE = SLOTS

MAX_S = 300  # the time after which a part is given up

Figures = dict[str, object]


async def acknowledgement() -> Figures:
    """Return how long Telegram waits until an update is acknowledged."""
    async with fleet(workers=2) as running:
        assert running.posting
        warming = arrivals(UPDATES_A_SECOND, WARMING_S, seed=1)
        times = arrivals(UPDATES_A_SECOND, OFFERED_S)
        updates = _said(running, CHATS, len(warming) + len(times))
        await post_on_time(running.posting, updates[: len(warming)], warming)
        before = await Reading.of(running)
        answers = await post_on_time(running.posting, updates[len(warming) :], times)
        used = (await Reading.of(running)).since(before)
    taken = [answer.at - due for due, answer in answers if answer.status == HTTPStatus.OK]
    return {
        "updates_a_second": round(len(answers) / used.at, 1),
        "acknowledged": milliseconds(taken),
        "refused": len(answers) - len(taken),
        "turns_a_second_meanwhile": round(used.sent / used.at, 1),
        "cores": used.cores,
    }


async def queue() -> Figures:
    """Return how long a message waits until its turn begins."""
    typed: dict[int, list[float]] = defaultdict(list)
    async with fleet(workers=2) as running:
        assert running.posting
        clock = asyncio.get_running_loop().time
        running.telegram.on_typing = lambda chat: typed[chat].append(clock())
        times = arrivals(MODERATE_A_SECOND, MODERATE_S)
        updates = _said(running, MODERATE_CHATS, len(times))
        before = await Reading.of(running)
        answers = await post_on_time(running.posting, updates, times)
        used = (await Reading.of(running)).since(before)
        await asyncio.sleep(LAST_TURNS_S)
    delays = []
    for at, (due, acknowledged) in enumerate(answers):
        typing = typed[_chat(at, MODERATE_CHATS)]
        first = bisect(typing, due)  # a turn may begin before we have read the acknowledgement
        delays += [max(0, began - acknowledged.at) for began in typing[first : first + 1]]
    return {
        "updates_a_second": round(len(updates) / used.at, 1),
        "begun": milliseconds(delays),
        "not_begun": len(answers) - len(delays),
        "cores": used.cores,
    }


def _said(running: Fleet, chats: int, count: int) -> list[Update]:
    """Return updates of people who write in turn."""
    texts = islice(cycle(short_texts(200)), count)
    return [running.telegram.said(_chat(at, chats), text) for at, text in enumerate(texts)]


def _chat(at: int, chats: int) -> int:
    return 1_000 + at % chats


async def workers() -> Figures:
    """Return the turns a second of some workers, and the cost of a turn with and without memory."""
    figures: Figures = {}
    for count in WORKERS:
        _progress(f"{count} workers")
        async with fleet(workers=count) as running:
            assert running.posting
            used = await _saturated(
                running, running.posting.deliver, round(PEOPLE_A_SLOT * SLOTS * count)
            )
        figures[str(count)] = _of_turns(used) | {
            "slots": SLOTS * count,
            "bound_by": "processor" if used.is_processor_bound else "slots",
        }
        if count == 1:
            cpu_ms = _bots_cpu_ms(used)
    _progress("without memory")
    async with baseline() as running:
        used = await _saturated(running, running.telegram.offer, BASELINE_PEOPLE)
    return {
        "workers": figures,
        "without_memory": _of_turns(used),
        "cpu_ratio": round(cpu_ms / _bots_cpu_ms(used), 2),
    }


async def _saturated(running: Fleet, deliver: Deliver, people: int) -> Reading:
    """Return what was used while so many people talked without pauses."""
    async with talking(running.telegram, deliver, range(10_000, 10_000 + people)):
        await asyncio.sleep(WARMING_TALK_S)
        before = await Reading.of(running)
        await asyncio.sleep(TALK_S)
        return (await Reading.of(running)).since(before)


def _of_turns(used: Reading) -> Figures:
    turns = used.sent
    called = sorted(used.commands.items(), key=lambda each: -each[1])
    return {
        "turns_a_second": round(turns / used.at, 1),
        "cpu_ms_a_turn": {
            name: round(1000 * spent / turns, 1) for name, spent in _by_duty(used).items()
        },
        "redis_commands_a_turn": {
            name: round(calls / turns, 1) for name, calls in called if calls > turns / 2
        }
        | {"all": round(sum(used.commands.values()) / turns, 1)},
        "redis_bytes_a_turn": round(used.nbytes / turns),
        "cores": used.cores,
    }


def _by_duty(used: Reading) -> dict[str, float]:
    """Return seconds of processor time, all workers together."""
    spent: dict[str, float] = {}
    for name, seconds in used.cpu_s.items():
        duty = name.partition(" ")[0]
        spent[duty] = spent.get(duty, 0) + seconds
    return spent


def _bots_cpu_ms(used: Reading) -> float:
    spent = _by_duty(used)
    return 1000 * sum(spent.get(duty, 0) for duty in ("bot", "web", "worker")) / used.sent


def _progress(what: str) -> None:
    sys.stderr.write(f"{what}\n")


async def measure() -> Figures:
    figures: Figures = {
        "machine": {"cores": CORES, "python": platform.python_version()},
        "load_average_before": os.getloadavg()[0],
    }
    for figures_of in (acknowledgement, queue, workers):
        name = figures_of.__name__
        _progress(name)
        async with asyncio.timeout(MAX_S):
            figures[name] = await figures_of()
        _progress(json.dumps(figures[name]))
    return figures


def main() -> None:
    sys.stdout.write(json.dumps(asyncio.run(measure()), indent=2) + "\n")


if __name__ == "__main__":
    main()
