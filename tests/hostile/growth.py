"""Finds replies whose cost grows faster than their length: `python -m tests.hostile.growth`.

It runs under a memory limit, because a reply of 187 characters once took six gigabytes.
"""

import gc
import resource
import sys
import time
from collections.abc import Iterator
from functools import partial

from bot.reply.parts import Part
from bot.reply.render import render
from tests.hostile.shapes import COMMANDS, SYMBOLS, Shape, nested, shapes

_MEMORY = 2**30
_MAX_RATIO = 3.4
"""How many times longer twice the length may take; quadratic time comes close to four."""

_MAX_OUTPUT = 4
"""Maximum of characters shown for each character of the reply; roots and fractions add signs."""

_TOO_SHORT_S = 0.02
"""A shorter time is too inexact to show growth."""


def faults(chars: int) -> Iterator[str]:
    """Yield the shapes whose cost grows faster than their length, up to `chars` characters."""
    for command in (*SYMBOLS, *COMMANDS):
        for depth in (8, 16, 24):
            yield from _faults(f"{command} {depth} deep", partial(_nested, command, depth), chars)
    for name, shape in shapes():
        yield from _faults(name, shape, chars)


def _nested(command: str, depth: int, _: int) -> str:
    return nested(command, depth)


def _faults(name: str, shape: Shape, chars: int) -> Iterator[str]:
    try:
        source = shape(chars)
        taken, shown = _measured(source)
        if shown > _MAX_OUTPUT * len(source) + 64:
            yield f"{name}: {len(source)} characters are shown as {shown}"
        if taken > _TOO_SHORT_S and (ratio := _ratio(shape, chars)) > _MAX_RATIO:
            yield f"{name}: {chars} characters take {ratio:.1f} times as long as half of them"
    except MemoryError:
        yield f"{name}: {chars} characters fill the memory"


def _ratio(shape: Shape, chars: int) -> float:
    """Return the ratio of the smallest measurements, because other processes only add time."""
    halves = [_measured(shape(chars // 2))[0] for _ in range(5)]
    wholes = [_measured(shape(chars))[0] for _ in range(5)]
    return min(wholes) / min(halves)


def _measured(source: str) -> tuple[float, int]:
    began = time.process_time()
    parts: tuple[Part, ...] = render(source)
    return time.process_time() - began, sum(len(part.text) for part in parts)


def main() -> int:
    """Print the faults found; return 1 when there are any."""
    gc.disable()  # a collection could fall into one measurement and not into the other
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    found = list(faults(int(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
