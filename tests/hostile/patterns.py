"""Finds regular expressions of the product that take quadratic time.

A pattern does so if it is tried at each position of a long run and reads on to the end of the run.
`python -m tests.hostile.patterns` prints the slow ones.
"""

import ast
import functools
import importlib
import inspect
import re
import sys
from collections import deque
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

from tests.work import QUADRATIC, ratio, seconds

ROOT = Path(__file__).parents[2]
PACKAGES = ("bot", "memory", "config")

CHARS = 102_400
MAX_S = 0.05  # CPU time that a search through a run of `CHARS` may take if it is quadratic
_LENGTHS = (6, 12, 18, 25, 100, 400, 1_600, 6_400, 25_600, CHARS)
"""Small steps come first, because a pattern may even take exponential time."""
_LONG_ENOUGH_S = 0.0002  # a search that takes this long shows how its time grows
_SURE_OF_LINEAR = 6_400
"""Shorter runs are over so soon that other processes can hide how the time grows."""
_ALWAYS = " \n\ta9_-.!中"
_WORD = re.compile(r"[^\W\d_]{2,}")
_NAMES_RE = re.compile(r"\bre\b")
_MAKES = re.compile(r"re\.compile|patterns_in")


def modules() -> Iterator[Path]:
    """Yield the Python files of the product."""
    for package in PACKAGES:
        yield from (ROOT / package).rglob("*.py")


def hidden(path: Path) -> Iterator[str]:
    """Yield the places of a file where a pattern is made that is not a constant of the module."""
    text = path.read_text("utf-8")
    if not _NAMES_RE.search(text):
        return
    tree = ast.parse(text)
    top_level = {
        call
        for statement in tree.body
        if not isinstance(statement, ast.AsyncFunctionDef | ast.ClassDef)
        if not isinstance(statement, ast.FunctionDef) or _makes_constants(statement)
        for call in ast.walk(statement)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id="re"), attr=name)):
                if name != "escape" and (name != "compile" or node not in top_level):
                    yield f"{path.relative_to(ROOT)}:{node.lineno}: re.{name}"
            case ast.ImportFrom(module="re"):
                yield f"{path.relative_to(ROOT)}:{node.lineno}: from re import"


def _makes_constants(function: ast.FunctionDef) -> bool:
    """Return whether it makes constants: at its first use, or of a file at the import."""
    cached = any(
        isinstance(each, ast.Name) and each.id == "cache" for each in function.decorator_list
    )
    return (cached and not function.args.args) or function.name == "patterns_in"


def patterns() -> dict[str, re.Pattern[str]]:
    """Return all patterns by module and name, each once; those for bytes as for text."""
    found: dict[re.Pattern[str], str] = {}
    for path in modules():
        if not _MAKES.search(path.read_text("utf-8")):
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
        case re.Pattern(pattern=bytes(source)):
            yield re.compile(source.decode("latin-1"), value.flags)
        case functools._lru_cache_wrapper() if not inspect.signature(value).parameters:
            yield from _within(value())
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
    """Return how many times longer a search takes through 16 times the length, if too many.

    Another character follows the run, so that a pattern which needs its end does not match. The
    run grows until the time shows how it grows, so a slow pattern is found in milliseconds.
    """
    for length in _LENGTHS:
        taken = seconds(_search(pattern, repeated, length))
        if taken * (CHARS / length) ** 2 <= MAX_S:  # fast enough even if quadratic
            if length >= 1_600:
                return 0
        elif taken > _LONG_ENOUGH_S or length == CHARS:
            part = _search(pattern, repeated, length // 16)
            if taken > QUADRATIC * min(seconds(part) for _ in range(3)):
                whole = _search(pattern, repeated, length)
                if (growth := ratio(whole, part, QUADRATIC, rounds=1)) > QUADRATIC:
                    return growth
            if length >= _SURE_OF_LINEAR:
                return 0
    return 0


def _search(pattern: re.Pattern[str], repeated: str, length: int) -> Callable[[], object]:
    text = f"{repeated * max(1, length // len(repeated))}\0"
    return lambda: deque(pattern.finditer(text), maxlen=0)


def main() -> None:
    """Print the patterns that are slow on repetitions of one string or of two."""
    for name, pattern in patterns().items():
        single = list(runs(pattern))
        for repeated in (*single, *map("".join, product(single[:40], repeat=2))):
            if growth := slow(pattern, repeated):
                sys.stdout.write(f"{name}: {repeated!r} {growth:.1f} times\n")


if __name__ == "__main__":
    main()
