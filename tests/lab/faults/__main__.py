"""`python -m tests.lab.faults` runs a day of talk for every fault and prints a line of figures.

It exits 1 if a promise was broken, and names the promise below the line.
"""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from dataclasses import fields, replace
from os import getpid
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic

from tests.acceptance.bot_process import fork_bots
from tests.lab.faults.catalogue import FAULTS
from tests.lab.faults.fault import Fault, play
from tests.lab.faults.verdict import Verdict

_NAMES = {"answered": "answered once", "in_doubt": "of these in doubt"}
_COUNTS = [field.name for field in fields(Verdict) if field.name != "complaints"]
_TITLES = [*(_NAMES.get(name, name.replace("_", " ")) for name in _COUNTS), "seconds"]


def main() -> int:
    """Run the chosen faults; return the exit status."""
    options = _options()
    chosen = [fault for fault in FAULTS if options.only.casefold() in fault.name.casefold()]
    width = max((len(fault.name) for fault in chosen), default=0)
    _say(" | ".join([f"{'fault':{width}}", *_TITLES]))
    broken = 0
    with TemporaryDirectory() as folder:
        fork_bots(Path(folder), getpid())
        for fault in chosen:
            figures, complaints = _played(
                replace(fault, rounds=options.rounds or fault.rounds), options.seed
            )
            _say(" | ".join([f"{fault.name:{width}}", *figures]))
            for complaint in complaints:
                _say(f"  {complaint}")
            broken += bool(complaints)
    _say(f"{len(chosen)} faults, {broken} broke a promise")
    return 1 if broken else 0


def _played(fault: Fault, seed: int) -> tuple[list[str], Sequence[str]]:
    """Return the figures of a fault's day for its line, and the complaints."""
    if fault.missing:
        return [f"skipped: {fault.missing}"], ()
    began = monotonic()
    try:
        with TemporaryDirectory() as folder:
            verdict = asyncio.run(play(fault, Path(folder), Random(seed)))
    except Exception as error:  # noqa: BLE001 - a day that ends early gets a line too
        return ["ended early"], [repr(error)]
    counts = [getattr(verdict, name) for name in _COUNTS]
    row = [*counts, round(monotonic() - began)]
    aligned = [f"{figure:>{len(title)}}" for title, figure in zip(_TITLES, row, strict=True)]
    return aligned, verdict.complaints


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.faults", description=__doc__)
    parser.add_argument("--only", default="", help="text in the name of the faults to run")
    parser.add_argument("--rounds", type=int, help="how often each fault strikes")
    parser.add_argument("--seed", type=int, default=1, help="decides who says what and when")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
