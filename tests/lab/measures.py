"""The measures of our own code that STYLE asks for, as one JSON object.

    python -m tests.lab.measures

Product files are the Python files of `bot`, `memory` and `config`. The first part reads them; the
second part sends one private text message through a real bot and counts the functions, files and
frames that the message passes (see `tests.lab.traced_bot`).
"""

import ast
import asyncio
import json
import signal
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from os import kill
from pathlib import Path
from statistics import median, quantiles

from tests.lab.bots import PATIENCE_S, REPLY, ROOT, Model, Running, World, running
from tests.servers.bot_api import BotApiServer, Chat, Person
from tests.servers.model_api import ModelApiServer
from tests.valkey import ValkeyServer

PACKAGES = ("bot", "memory", "config")
WARMING_MESSAGES = 3

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file of the product."""

    path: Path

    @cached_property
    def text(self) -> str:
        """The file's text."""
        return self.path.read_text()

    @cached_property
    def lines(self) -> int:
        """How many lines it has."""
        return len(self.text.splitlines())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        """Every node of its syntax tree."""
        return list(ast.walk(ast.parse(self.text)))

    @property
    def functions(self) -> Iterator[Function]:
        """Every function and method."""
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        """Every class."""
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    @property
    def package(self) -> str:
        """`bot`, `memory` or `config`."""
        return self.path.relative_to(ROOT).parts[0]


def product() -> list[Source]:
    """Return the product's files, by path."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return [Source(path) for path in sorted(paths)]


def sizes(sources: list[Source]) -> dict[str, object]:
    """Return how large files and functions are."""
    written = [source for source in sources if source.lines > 1]
    functions = [
        (_length(function), f"{source.path.relative_to(ROOT)}:{function.name}")
        for source in sources
        for function in source.functions
    ]
    by_package = Counter[str]()
    for source in sources:
        by_package["/".join(source.path.relative_to(ROOT).parts[:-1])] += source.lines
    lines = [source.lines for source in written]
    return {
        "files": len(written),
        "lines": sum(lines),
        "file_median_p90_longest": _spread(lines),
        "files_over_250": {
            str(source.path.relative_to(ROOT)): source.lines
            for source in written
            if source.lines > 250
        },
        "functions": len(functions),
        "function_median_p90_longest": _spread([length for length, _ in functions]),
        "longest_functions": [name for _, name in sorted(functions, reverse=True)[:5]],
        "lines_by_package": dict(sorted(by_package.items())),
    }


def habits(sources: list[Source]) -> dict[str, object]:
    """Return what the code does about types, names, errors and docstrings."""
    functions = [function for source in sources for function in source.functions]
    raising = [function for function in functions if _is_public(function) and _raised(function)]
    broad = sum(_is_broad(node) for source in sources for node in source.nodes)
    return {
        "annotated_functions": _share(map(_is_annotated, functions)),
        "documented_public_functions": _share(
            bool(ast.get_docstring(function)) for function in functions if _is_public(function)
        ),
        "functions_over_five_parameters": [
            function.name for function in functions if parameters(function) > 5
        ],
        "doubled_class_names": doubled_classes(sources),
        "doubled_file_stems": doubled_stems(sources),
        "broad_excepts": broad,
        "broad_excepts_a_thousand_lines": round(1000 * broad / sum(s.lines for s in sources), 2),
        "raising_functions": len(raising),
        "docstrings_that_name_an_error": _share(
            any(name in (ast.get_docstring(function) or "") for name in _raised(function))
            for function in raising
        ),
        "type_ignores": sum(source.text.count("# type: ignore") for source in sources),
        "noqa": sum(source.text.count("# noqa") for source in sources),
    }


async def way_of_a_message() -> dict[str, object]:
    """Send one text to a warm bot; return what it passed before the reply was committed."""
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as valkey:
        async with BotApiServer() as telegram, ModelApiServer(Model()) as model:
            return await _way(World(telegram, model, valkey, Path(folder)))


async def _way(world: World) -> dict[str, object]:
    async with running(world, "tests.lab.traced_bot", world.valkey.url) as bot:
        await bot.ready()
        [(person, chat)] = world.people(7_000, 1)
        for number in range(WARMING_MESSAGES):
            await _say(person, chat, f"Message {number}")
        await _signalled(bot, signal.SIGUSR1)
        await _say(person, chat, "What did I say first?")
        return await _trace(bot, world.folder / "trace.json")


async def _say(person: Person, chat: Chat, text: str) -> None:
    said = await person.say(chat, text)
    reply = await chat.wait_for_reply(after=said, timeout_s=PATIENCE_S)
    assert reply.text == REPLY


async def _signalled(bot: Running, number: signal.Signals) -> None:
    kill(bot.pid, number)
    await asyncio.sleep(0.5)


async def _trace(bot: Running, path: Path) -> dict[str, object]:
    await _signalled(bot, signal.SIGUSR2)
    traced: dict[str, list[str]] = json.loads(await asyncio.to_thread(path.read_text))
    functions = traced["functions"]
    return {
        "functions": len(functions),
        "files": len({name.partition(":")[0] for name in functions}),
        "frames_to_the_sdk": len(traced["to_the_sdk"]),
        "to_the_sdk": traced["to_the_sdk"],
    }


def _length(function: Function) -> int:
    return (function.end_lineno or function.lineno) - function.lineno + 1


def _spread(values: list[int]) -> tuple[int, int, int]:
    return int(median(values)), int(quantiles(values, n=10)[-1]), max(values)


def _share(marks: Iterable[bool]) -> float:
    found = list(marks)
    return round(sum(found) / len(found), 3) if found else 1.0


def _is_public(function: Function) -> bool:
    return not function.name.startswith("_")


def _is_annotated(function: Function) -> bool:
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return function.returns is not None and all(
        argument.annotation or argument.arg in ("self", "cls") for argument in named
    )


def parameters(function: Function) -> int:
    """Count the parameters of a function, `self` and `cls` apart."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def _is_broad(node: ast.AST) -> bool:
    if not isinstance(node, ast.ExceptHandler):
        return False
    return node.type is None or (
        isinstance(node.type, ast.Name) and node.type.id in ("Exception", "BaseException")
    )


def _raised(function: Function) -> set[str]:
    """Name the errors that the function itself raises."""
    names = set()
    for node in ast.walk(function):
        if isinstance(node, ast.Raise) and node.exc is not None:
            error = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
            if isinstance(error, ast.Name) and error.id[0].isupper():
                names.add(error.id)
    return names


def doubled_classes(sources: list[Source]) -> dict[str, list[str]]:
    """Return each name of several public classes, with their files."""
    paths = defaultdict(list)
    for source in sources:
        for node in source.classes:
            if not node.name.startswith("_"):
                paths[node.name].append(str(source.path.relative_to(ROOT)))
    return {name: found for name, found in paths.items() if len(found) > 1}


def doubled_stems(sources: list[Source]) -> dict[str, list[str]]:
    """Return each file name that `bot` or `memory` has twice, with the files."""
    paths = defaultdict(list)
    for source in sources:
        if not source.path.stem.startswith("__"):
            paths[source.package, source.path.stem].append(str(source.path.relative_to(ROOT)))
    return {stem: found for (_, stem), found in paths.items() if len(found) > 1}


def main() -> None:
    """Print the measures."""
    sources = product()
    measures = {
        **sizes(sources),
        **habits(sources),
        "one_text_message": asyncio.run(way_of_a_message()),
    }
    json.dump(measures, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
