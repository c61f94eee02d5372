"""200 people tell the bot secrets in chats, groups and topics; nobody sees what others said.

    python -m tests.lab.isolation [--people 200]

It is a test of the suite with more people, and takes about half a minute.
"""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.acceptance.rig import open_rig
from tests.acceptance.test_isolation import tell_ask_and_forget
from tests.valkey import ValkeyServer


async def play(people: int) -> None:
    """Run the test with so many people; raise `AssertionError` if a secret was seen elsewhere."""
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as valkey:
        async with open_rig(valkey.url, Path(folder), "webhook") as rig:
            await tell_ask_and_forget(rig, people, groups=people // 10, topics=people // 20)


def main() -> int:
    """Run it and say that it held."""
    parser = argparse.ArgumentParser(prog="python -m tests.lab.isolation", description=__doc__)
    parser.add_argument("--people", type=int, default=200)
    people = parser.parse_args().people
    asyncio.run(play(people))
    sys.stdout.write(f"{people} people: no text was seen in another scope\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
