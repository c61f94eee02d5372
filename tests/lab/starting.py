"""Compares what it costs to start the bot from several checkouts, in turns on one machine.

    python -m tests.lab.starting TREE [TREE ...] [--rounds 5]

Each TREE is a checkout of this repository. They and the bot without memory, which opens the same
two SDKs (`tests.lab.baseline_bot`), start in turns, and the ratios compare with that bot. The
settings are the smallest ones. All run with this Python and with the packages that are installed.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
from collections import defaultdict
from pathlib import Path

from tests.acceptance.bot_process import BotProcess
from tests.lab.baseline_bot import BASELINE
from tests.lab.figures import cpu_s, resident_mb
from tests.servers.bot_api import BotApiServer

_SETTLE_S = 3
_TIMEOUT_S = 60
_WITHOUT_MEMORY = "a bot without memory"


async def polled(tree: Path, module: str) -> dict[str, float]:
    """Return the CPU seconds until a bot asks for updates, and its resident megabytes then.

    The embedded Valkey is a process of its own and not part of the figures.
    """
    with tempfile.TemporaryDirectory() as folder:
        async with BotApiServer() as telegram:
            polls = asyncio.Event()
            begin = telegram.updates.begin_poll

            def begun() -> int:
                polls.set()
                return begin()

            telegram.updates.begin_poll = begun  # type: ignore[method-assign]
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": folder,
                "PWD": str(tree),
                "DATA_DIR": folder,
                "TELEGRAM_API_URL": telegram.url,
                "TELEGRAM_BOT_TOKEN": telegram.token,
                "OPENAI_API_KEY": "none",
                "OPENAI_MODEL": "none",
                "PORT": "0",
            }
            async with BotProcess(environment, module=module) as bot:
                await asyncio.wait_for(polls.wait(), _TIMEOUT_S)
                used_s = cpu_s(bot.pid)
                await asyncio.sleep(_SETTLE_S)
                return {"first_poll_cpu_s": used_s, "idle_mb": resident_mb(bot.pid)}


def main() -> int:
    """Print the medians of each checkout, and their ratios to those of the bot without memory."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.starting", description=__doc__)
    parser.add_argument("trees", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    found: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(given.rounds):
        for name, value in asyncio.run(polled(Path(), BASELINE)).items():
            found[_WITHOUT_MEMORY][name].append(value)
        for tree in given.trees:
            for name, value in asyncio.run(polled(tree, "bot")).items():
                found[str(tree)][name].append(value)
    medians = {
        tree: {name: statistics.median(values) for name, values in figures.items()}
        for tree, figures in found.items()
    }
    last = medians[_WITHOUT_MEMORY]
    for tree, figures in medians.items():
        ratios = {name: round(figures[name] / value, 3) for name, value in last.items()}
        rounded = {name: round(value, 2) for name, value in figures.items()}
        sys.stdout.write(json.dumps({"tree": tree, **rounded, "ratios": ratios}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
