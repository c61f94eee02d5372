"""Finds replies whose cost grows faster than their length: `python -m tests.hostile.growth`.

CPU time of two lengths is compared within one run, so a busy machine does not matter.

It runs under a memory limit, because a reply of 187 characters once took six gigabytes.
"""

import resource
import sys
from collections.abc import Iterator
from functools import partial

from bot.reply.parts import Part
from bot.reply.render import render
from tests.hostile.shapes import COMMANDS, SYMBOLS, Shape, nested, shapes
from tests.work import QUADRATIC, ratio, seconds

_MEMORY = 2**30
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
        source, quarter = shape(chars), shape(chars // 4)
        parts: list[Part] = []
        taken = seconds(lambda: parts.extend(render(source)))
        shown = sum(len(part.text) for part in parts)
        if shown > _MAX_OUTPUT * len(source) + 64:
            yield f"{name}: {len(source)} characters are shown as {shown}"
        if taken > _TOO_SHORT_S:
            growth = ratio(lambda: render(source), lambda: render(quarter), QUADRATIC, rounds=5)
            if growth > QUADRATIC:
                yield f"{name}: {chars} characters take {growth:.1f} times as long as a quarter"
    except MemoryError:
        yield f"{name}: {chars} characters fill the memory"


def main() -> int:
    """Print the faults found; return 1 when there are any."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    found = list(faults(int(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
