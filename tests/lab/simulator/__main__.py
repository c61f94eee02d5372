"""`python -m tests.lab.simulator` runs many schedules and shows the trace of a broken promise."""

import argparse
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from multiprocessing import Pool

from tests.lab.simulator.mutants import MUTANTS
from tests.lab.simulator.schedule import Protocol, simulator

_CHUNK = 250
_SHOWN = 5
_COUNTS = (
    *("steps", "dies", "is asked to stop", "is stopped", "accepted", "closed by commit"),
    *("answered", "undeliverable or unknown", "set aside", "closed by erased", "clears"),
    *("turns begun again", "edits of waiting messages", "edits of older messages"),
    *("answered again", "stops", "tasks"),
    *("forgettings", "parts sent", "parts doubled in doubt", "late parts", "reminders sent"),
)

Chunk = tuple[Counter[str], list[tuple[int, str]]]


def main() -> int:
    """Run schedules and print a table; return 1 if a promise was broken."""
    options = _options()
    if options.mutants:
        return _find_mutants(options)
    if options.trace:
        return _trace(options.seed, reminds=options.reminders)
    began = time.monotonic()
    counts: Counter[str] = Counter()
    broken: list[tuple[int, str]] = []
    seeds = range(options.seed, options.seed + options.schedules)
    for done, (more, violations) in enumerate(_chunks(seeds, options), 1):
        counts += more
        broken += violations
        if sys.stderr.isatty():
            sys.stderr.write(f"\r{min(done * _CHUNK, len(seeds)):,} ")
    _say(_table(counts, len(seeds), len(broken), time.monotonic() - began))
    for seed, violation in broken[:_SHOWN]:
        _say(f"\nseed {seed}: {violation}")
    return _trace(broken[0][0], reminds=options.reminders) if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.lab.simulator", description=__doc__)
    parser.add_argument("--schedules", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0, help="the first seed")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--reminders", action="store_true", help="each message asks for a reminder")
    parser.add_argument(
        "--mutants", action="store_true", help="print the seed from `since` that finds each mutant"
    )
    parser.add_argument(
        "--trace", action="store_true", help="show everything that happens with one seed"
    )
    return parser.parse_args()


def _chunks(seeds: range, options: argparse.Namespace) -> Iterator[Chunk]:
    chunks = [seeds[at : at + _CHUNK] for at in range(0, len(seeds), _CHUNK)]
    run = partial(run_all, reminds=options.reminders)
    if options.jobs == 1:
        yield from map(run, chunks)
        return
    # A process does not free all memory of a simulator, so each chunk gets a new process.
    with Pool(options.jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(run, chunks)


def run_all(seeds: Iterable[int], *, reminds: bool = False) -> Chunk:
    """Run some schedules; return the counts, and seed and violation of each broken promise."""
    counts: Counter[str] = Counter()
    broken = []
    with simulator(Protocol(reminds=reminds)) as simulated:
        for seed in seeds:
            outcome = simulated.run(seed)
            counts += outcome.counts
            if outcome.violation:
                broken.append((seed, outcome.violation))
    return counts, broken


def _find_mutants(options: argparse.Namespace) -> int:
    """Print the first seed that finds each mutant; return 1 if one is not found."""
    with Pool(options.jobs) as pool:
        found = pool.imap(partial(_first_found, options.schedules), range(len(MUTANTS)))
        firsts = []
        for mutant, first in zip(MUTANTS, found, strict=True):
            firsts.append(first)
            _say(f"{'not found' if first is None else first!s:>9}  {mutant.what}")
    return int(None in firsts)


def _first_found(schedules: int, number: int) -> int | None:
    mutant = MUTANTS[number]
    seeds = range(mutant.since, mutant.since + schedules)
    with simulator(mutant.protocol()) as simulated:
        finds = lambda seed: simulated.run(seed).violation.startswith(mutant.promise)  # noqa: E731
        return next(filter(finds, seeds), None)


def _trace(seed: int, *, reminds: bool) -> int:
    """Print the trace of a schedule; return 1 if a promise was broken in it."""
    with simulator(Protocol(reminds=reminds)) as simulated:
        outcome = simulated.run(seed, traced=True)
    _say("\n".join([f"\nseed {seed}, everything that happened:\n", *outcome.trace]))
    return 1 if outcome.violation else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _table(counts: Counter[str], schedules: int, violations: int, took_s: float) -> str:
    rows = [("schedules", schedules), *((name, counts[name]) for name in _COUNTS)]
    rows.append(("violations", violations))
    lines = [f"{name:<28}{number:>14,}" for name, number in rows]
    return "\n".join([*lines, f"{'seconds':<28}{took_s:>14,.0f}"])


if __name__ == "__main__":
    sys.exit(main())
