"""The measures of our own code that STYLE asks for, as one JSON object.

    python -m tests.lab.measures

Product files are the Python files of `bot`, `memory` and `config`. The first part reads them. The
second part starts a real bot, sends it a text, a picture and `/forget`, and counts the functions,
files and frames that each of them passes (see `tests.lab.traced_bot`).
"""

import ast
import asyncio
import json
import re
import signal
import sys
import tempfile
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import kill
from pathlib import Path

from bot.language.catalogue import Catalogue
from memory.behaviors.statements import Statement
from tests.acceptance.bot_process import ROOT
from tests.acceptance.rig import Rig, open_rig
from tests.lab.plain_model import Model
from tests.servers.model_api import ChatRequest, Reply
from tests.valkey import ValkeyServer

PACKAGES = ("bot", "memory", "config")
WARMING_MESSAGES = 3
_ROUND_S = 12.0  # longer than a round of all that runs while nobody talks
_AGAIN_S = 0.5
_SOON = {"OPENAI_API": "chat", "LEARN_EVERY_TURNS": "1", "LEARN_AFTER_S": "1"}
"""The bot learns soon after each message, so that a path ends in seconds."""

WIRING = ("app", "feature", "features", "assistant")
"""Files beside `bot/app.py` that only put parts together."""

TRACES_OF_FEATURES = {
    "reminders": r"remind",
    "pictures": r"picture|photo|album",
    "voice": r"(?<!in)voice|speech|\bSpeaker\b|transcri",
    "off_record": r"off_record|off the record|OffRecord",
    "broadcast": r"broadcast|announcement",
    "access": r"access_list|AccessList|[Ii]nvitation|Strangers|PeopleList",
    "mcp": r"mcp|outside_tool",
    "links": r"read_page|search_web|bot\.links",
    "imports": r"Importing\b|features\.imports",
    "topics": r"other_topics|OtherTopics",
    "backup": r"backup",
    "check": r"features\.check",
    "usage": r"UsageCommand",
    "memory_page": r"memory_page|MemoryList|MemoryEntries|MemorySettings",
    "recall": r"RecallCommand",
    "stats": r"StatsCommands",
    "alerts": r"ModelWatch|BudgetNews|CapacityNews",
    "privacy": r"PrivacyCommand",
    "mute": r"MuteCommand",
    "export": r"features\.export",
    "documents": r"document|TextRag|text_rag",
}
"""What names a feature in code, comments apart. `speaker` is the person who speaks."""

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """One Python file of the product."""

    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text()

    @cached_property
    def lines(self) -> int:
        return len(self.text.splitlines())

    @cached_property
    def nodes(self) -> list[ast.AST]:
        return list(ast.walk(ast.parse(self.text)))

    @cached_property
    def code(self) -> str:
        """Its code without comments, docstrings and other texts that stand alone."""
        tree = ast.parse(self.text)
        for node in ast.walk(tree):
            for name in ("body", "orelse", "finalbody"):
                if isinstance(steps := getattr(node, name, None), list):
                    setattr(node, name, [each for each in steps if not _is_prose(each)])
        return ast.unparse(tree)

    @property
    def functions(self) -> Iterator[Function]:
        return (node for node in self.nodes if isinstance(node, Function))

    @property
    def classes(self) -> Iterator[ast.ClassDef]:
        return (node for node in self.nodes if isinstance(node, ast.ClassDef))

    def is_in(self, *folders: str) -> bool:
        """Return whether the file is in this folder of `bot`."""
        return self.path.relative_to(ROOT).parts[1 : 1 + len(folders)] == folders


def product() -> list[Source]:
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return [Source(path) for path in sorted(paths)]


def budgets(sources: list[Source]) -> dict[str, object]:
    """Return the sizes of the whole that DESIGN bounds."""
    product_lines = sum(source.lines for source in sources)
    aside = [source for source in sources if source.is_in("features") or source.is_in("playground")]
    wiring = [source for source in sources if _is_wiring(source)]
    tests = (path.read_text().count("\n") for path in (ROOT / "tests").rglob("*.py"))
    return {
        "product_lines": product_lines,
        "core_lines": product_lines - sum(source.lines for source in aside),
        "files": sum(source.lines > 1 for source in sources),
        "wiring_lines": sum(source.lines for source in wiring),
        "wiring_files": len(wiring),
        "files_that_name_a_feature": spread_of_features(sources),
        "test_lines": sum(tests),
    }


def spread_of_features(sources: list[Source]) -> dict[str, int]:
    """Return how many files outside its folder name each feature, the playground apart."""
    outside = [source for source in sources if not source.is_in("playground")]
    return {
        name: sum(
            bool(re.search(pattern, source.code)) and not source.is_in("features", name)
            for source in outside
        )
        for name, pattern in TRACES_OF_FEATURES.items()
    }


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_wiring(source: Source) -> bool:
    parts = source.path.relative_to(ROOT).with_suffix("").parts
    others = {("bot", "model", "models"), ("memory", "memory")}
    is_list = parts == ("bot", "features", "__init__")
    return is_list or parts in others or (len(parts) == 2 and parts[1] in WIRING)


KINDS = ("text", "picture", "forget")
_SAID = {"text": "My boat lies in Kobarid. What did I say?", "forget": "/forget"}


async def traced_paths(kinds: Collection[str] = KINDS) -> dict[str, dict[str, int]]:
    """Send a text, a picture and `/forget` to a warm bot; return what each of them passed.

    A path begins at the update and ends when its learning is over. Functions that also run while
    nobody talks do not count.
    """
    with tempfile.TemporaryDirectory() as folder, ValkeyServer(Path(folder)) as valkey:
        async with open_rig(valkey.url, Path(folder), settings=_SOON) as rig:
            rig.model.responder = LearningModel()
            rig.bot = rig.another_bot(module="tests.lab.traced_bot")
            async with rig.bot:
                return await _paths(rig, kinds)


class LearningModel(Model):
    """Learns one fact from the last message of a person in each request for learning."""

    async def respond(self, request: ChatRequest) -> Reply:
        reply = await super().respond(request)
        if request.response_format == "text":
            return reply
        filled = json.loads(reply.text)
        numbers = re.findall(r'"n":(\d+),[^}]*"who":"Person', request.messages[-1].content)
        if numbers and "facts" in filled:
            boat = Statement(text="Has a boat.", message=int(numbers[-1]))
            filled["facts"] = {"facts": [boat.model_dump(mode="json", by_alias=True)]}
        return replace(reply, text=json.dumps(filled))


async def _paths(rig: Rig, kinds: Collection[str]) -> dict[str, dict[str, int]]:
    # The last of what a bot does once, after it is ready.
    described = len(Catalogue().languages)
    calls = partial(rig.telegram.calls_to, "setMyDescription")
    await rig.telegram.wait_for(lambda: len(calls()) == described)
    traced = {"start": await _trace(rig)}
    person, chat = rig.person(7_000, "Person")
    learned = 0

    async def send(kind: str) -> None:
        """Send something; return when the bot has learned from it, if it can."""
        nonlocal learned
        if kind == "picture":
            await rig.send(person, chat, "photo", caption="What is this?")
        else:
            await rig.ask(person, chat, _SAID.get(kind, kind))
        learned += 0 if kind == "forget" else 2
        await rig.wait_until_learned(learned)

    for number in range(WARMING_MESSAGES):
        await send(f"Message {number}")
    await _trace(rig)  # what follows the last message is over
    await _signalled(rig, signal.SIGUSR1)
    await asyncio.sleep(_ROUND_S)
    quiet = set((await _trace(rig))["functions"])
    for kind in kinds:
        await _signalled(rig, signal.SIGUSR1)
        await send(kind)
        trace = await _trace(rig)
        trace["functions"] = [each for each in trace["functions"] if each not in quiet]
        traced[kind] = trace
    return {name: _counted(trace) for name, trace in traced.items()}


def _counted(trace: Mapping[str, list[str]]) -> dict[str, int]:
    functions = trace["functions"]
    return {
        "functions": len(functions),
        "files": len({name.partition(":")[0] for name in functions}),
        "frames_to_the_sdk": len(trace["to_the_sdk"]),
        "frames_of_internal_calls": len(trace["internal_to_the_sdk"]),
        "loads_the_vocabulary": "memory/text/tokens.py:_load" in functions,
    }


async def _trace(rig: Rig) -> dict[str, list[str]]:
    """Return the trace when nothing new has run for a while."""
    trace = await _signalled(rig, signal.SIGUSR2)
    await asyncio.sleep(_AGAIN_S)
    while (later := await _signalled(rig, signal.SIGUSR2)) != trace:
        trace = later
        await asyncio.sleep(_AGAIN_S)
    return trace


async def _signalled(rig: Rig, number: signal.Signals) -> dict[str, list[str]]:
    """Send a signal to the bot; return the trace that it writes at each."""
    written = Path(rig.environment["HOME"]) / "trace.json"
    written.unlink(missing_ok=True)
    kill(rig.bot.pid, number)
    while not written.exists():  # noqa: ASYNC110 - it is another process
        await asyncio.sleep(0.01)
    trace: dict[str, list[str]] = json.loads(written.read_bytes())
    return trace


def parameters(function: Function) -> int:
    """Count the parameters of a function, `self` and `cls` apart."""
    arguments = function.args
    named = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return sum(argument.arg not in ("self", "cls") for argument in named)


def doubled_classes(sources: list[Source]) -> dict[str, list[str]]:
    """Return each name of several public classes, with their files."""
    paths = defaultdict(list)
    for source in sources:
        for node in source.classes:
            if not node.name.startswith("_"):
                paths[node.name].append(str(source.path.relative_to(ROOT)))
    return {name: found for name, found in paths.items() if len(found) > 1}


def main() -> None:
    measures = {"budgets": budgets(product()), "paths": asyncio.run(traced_paths())}
    json.dump(measures, sys.stdout, indent=2)
    sys.stdout.write("\n")


if __name__ == "__main__":
    main()
