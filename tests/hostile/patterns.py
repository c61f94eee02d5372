"""Finds regular expressions of the product that take quadratic time.

A pattern does so if it is tried at each position of a long run and reads on to the end of the run.
`python -m tests.hostile.patterns` prints the slow ones.
"""

import ast
import importlib
import re
import sys
import time
from collections import deque
from collections.abc import Iterator
from itertools import product
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "memory", "config")

CHARS = 100_000
MAX_S = 0.05
_ALWAYS = " \n\ta9_-.!中"
_WORD = re.compile(r"[^\W\d_]{2,}")


def modules() -> Iterator[Path]:
    """Yield the Python files of the product."""
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def hidden(path: Path) -> Iterator[str]:
    """Yield the places of a file where a pattern is made that is not a constant of the module."""
    tree = ast.parse(path.read_text("utf-8"))
    top_level = {
        call
        for statement in tree.body
        if not isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        for call in ast.walk(statement)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
                if name != "escape" and (name != "compile" or node not in top_level):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: re.{name}"
            case ast.ImportFrom(module="re"):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: from re import"


def patterns() -> dict[str, re.Pattern[str]]:
    """Return all patterns for text by module and name, each once."""
    found: dict[re.Pattern[str], str] = {}
    for path in modules():
        if "re.compile" not in path.read_text("utf-8"):
            continue
        module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
        for name, value in vars(importlib.import_module(module)).items():
            for number, pattern in enumerate(_within(value)):
                found.setdefault(pattern, f"{module}.{name}[{number}]")
    return {name: pattern for pattern, name in found.items()}


def _within(value: object) -> Iterator[re.Pattern[str]]:
    match value:
        case re.Pattern(pattern=str()):
            yield value
        case dict():
            yield from _within([*value.keys(), *value.values()])
        case tuple() | list() | set() | frozenset():
            for each in value:
                yield from _within(each)


def runs(pattern: re.Pattern[str]) -> Iterator[str]:
    """Yield strings to repeat: the signs in a pattern, some of its words, and some letters."""
    signs = (sign for sign in pattern.pattern if not (sign.isascii() and sign.isalnum()))
    yield from list(dict.fromkeys(signs))[:24]
    yield from list(dict.fromkeys(_WORD.findall(pattern.pattern)))[:8]
    yield from _ALWAYS


def slow(pattern: re.Pattern[str], repeated: str) -> float:
    """Return the seconds of a search through a long run if they are too many, else 0.

    Another character follows the run, so that a pattern which needs its end does not match. Two
    short runs show whether the time may be quadratic. Only then is the full length tried; half of
    that length shows whether the length or a busy machine costs the time.
    """
    short, longer, half, whole = (CHARS // len(repeated) // share for share in (40, 10, 2, 1))
    if _seconds(pattern, f"{repeated * short}\0") * 1600 <= MAX_S:  # fast even if quadratic
        return 0
    taken = _best(pattern, repeated * short)
    if taken > MAX_S / 8:  # far too slow already
        return taken * 1600
    # Four times the length takes four times the linear part and 16 times the quadratic one.
    taken_longer = _seconds(pattern, f"{repeated * longer}\0")
    quadratic = (taken_longer - 4 * taken) / 12
    if taken_longer < 4.25 * taken or 40 * taken + 1600 * quadratic <= MAX_S / 2:
        return 0
    taken = _seconds(pattern, f"{repeated * whole}\0")
    if taken <= MAX_S or taken < 3 * _seconds(pattern, f"{repeated * half}\0"):
        return 0
    taken = _best(pattern, repeated * whole)
    return taken if taken > MAX_S and taken > 3 * _best(pattern, repeated * half) else 0


def _best(pattern: re.Pattern[str], text: str) -> float:
    return min(_seconds(pattern, f"{text}\0") for _ in range(3))


def _seconds(pattern: re.Pattern[str], text: str) -> float:
    began = time.process_time()
    deque(pattern.finditer(text), maxlen=0)
    return time.process_time() - began


def main() -> None:
    """Print the patterns that are slow on repetitions of one string or of two."""
    for name, pattern in patterns().items():
        single = list(runs(pattern))
        for repeated in (*single, *map("".join, product(single[:40], repeat=2))):
            if taken := slow(pattern, repeated):
                sys.stdout.write(f"{name}: {repeated!r} {taken:.2f} s\n")


if __name__ == "__main__":
    main()
