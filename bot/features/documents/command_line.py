"""`python -m bot ingest`: stores the operator's documents in namespaces, or removes them.

Only bots that name one of the namespaces in `DOCUMENT_NAMESPACES` read them.
"""

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.costs import UsageRecorder, billed_to
from bot.feature import Subcommands
from bot.features.documents.formats import SUFFIXES, Limits, format_of, read_sections
from bot.features.documents.settings import NAMESPACE
from bot.model.models import open_models
from bot.parsing.answers import NotRead
from bot.parsing.processes import REASONS
from bot.runtime.process import memory_options, open_store, redis_address
from config.settings import Settings
from memory.documents import Library, Origin, key_of, passages
from memory.memory import Memory
from memory.scopes.changes import NotWritten
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.embedded import EmbeddedBusy
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

LIMITS = Limits(pages=5_000, chars=20_000_000, parser_s=300, parser_cpu_s=300, parser_mb=2_048)
"""For the operator's own files. They may be larger than the files that people send."""


@dataclass(frozen=True, slots=True)
class IngestRequest:
    """What to do with a file, or with all files of a folder under their relative paths."""

    path: Path
    namespaces: Sequence[str]
    link: str = ""
    removes: bool = False

    @property
    def scopes(self) -> list[Scope]:
        """The scopes of the namespaces."""
        return [Scope.of_namespace(each) for each in self.namespaces]

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield the name and the path of each file, sorted."""
        if not self.path.is_dir():
            yield self.path.name, self.path
            return
        for file in sorted(self.path.rglob("*")):
            if file.suffix.lower() in SUFFIXES and file.is_file():
                yield str(file.relative_to(self.path)), file


def add_commands(commands: Subcommands) -> None:
    """Add the command; `command` of its options is the function that runs it."""
    ingest = commands.add_parser("ingest", help="put documents into namespaces")
    ingest.set_defaults(command=run_ingest)
    ingest.add_argument("path", type=Path, help="a document, or a folder of them")
    ingest.add_argument(
        "--namespace", required=True, action="append", help="where to; may be given several times"
    )
    ingest.add_argument("--link", default="", help="where people find the document")
    ingest.add_argument("--remove", action="store_true", help="remove the documents")


def run_ingest(settings: Settings, options: argparse.Namespace) -> int:
    """Run the command and print a line for each file; return the exit status."""
    if settings.telegram_bot_token is None:
        sys.exit("TELEGRAM_BOT_TOKEN is not set: it names the bot that the documents belong to")
    namespaces = tuple(dict.fromkeys(options.namespace))
    if not all(map(NAMESPACE.fullmatch, namespaces)):
        sys.exit("--namespace: use only A-Z a-z 0-9 . _ -")
    request = IngestRequest(options.path, namespaces, options.link, options.remove)
    if not request.removes and not request.path.exists():
        sys.exit(f"{request.path} does not exist")
    try:
        with redis_address(settings) as redis:
            return asyncio.run(_ingest(settings, redis, request))
    except EmbeddedBusy:
        sys.stderr.write(
            f"a running bot uses the embedded Valkey in {settings.data_dir}: stop it, ingest, and "
            "start it again. With REDIS_URL set, both can run at the same time\n"
        )
        return 1


async def _ingest(settings: Settings, redis: str, request: IngestRequest) -> int:
    tokens = await TokenCounter.load()
    async with open_store(redis, settings) as client:
        recorder = UsageRecorder()
        async with open_models(settings, [recorder.model_called]) as models:
            options = memory_options(settings)
            memory = Memory(client, settings.bot_id, tokens, models.embedder, options)
            await memory.take_layout()
            async with recorder.writing(memory.usage):
                with billed_to(request.scopes[0]):
                    return await ingest(memory, request)


async def ingest(memory: Memory, request: IngestRequest) -> int:
    """Store or remove the requested documents, embed new passages; return the exit status."""
    library = Library(memory.scopes)
    counts = Counter[str]()
    for name, file in request.files():
        if request.removes:
            found = [await library.remove(scope, key_of(name)) for scope in request.scopes]
            what = "removed" if any(each is not None for each in found) else "not found"
            counts[what] += 1
            _say(name, what)
            continue
        try:
            content = await asyncio.to_thread(file.read_bytes)
            sections = await read_sections(content, format_of(file.name, ""), LIMITS)
            cut = await asyncio.to_thread(passages, sections, memory.tokens)
            origin = Origin(name, request.link, len(content))
            memories = [await memory.scopes.read(scope) for scope in request.scopes]
            put = [await library.put(each, origin, cut) for each in memories]
        except NotRead as refusal:
            counts["refused"] += 1
            _say(name, f"refused: {REASONS.get(refusal.reason, REASONS['damaged'])}")
        except NotWritten:
            counts["refused"] += 1
            _say(name, "not stored: it was changed at the same time; try again")
        else:
            count = put[0].document.passages
            counts.update(files=1, passages=count)
            is_new = any(each.is_new for each in put)
            _say(name, _counted(count, "passage") if is_new else "unchanged")
    try:
        for scope in request.scopes:
            await memory.learn(scope)
    except EmbeddingsUnavailable:
        _say("embeddings", "unavailable now; a running bot will embed the passages later")
    return _report(counts, request)


def _report(counts: Counter[str], request: IngestRequest) -> int:
    """Print the counts; return 1 if a file was refused or if there was no file, else 0."""
    if not counts.total():
        sys.stderr.write(f"no document in {request.path}\n")
        return 1
    noun = "namespace" if len(request.namespaces) == 1 else "namespaces"
    where = f"{noun} {', '.join(request.namespaces)}"
    if request.removes:
        absent = f", {counts['not found']} not found" if counts["not found"] else ""
        _say(where, f"{counts['removed']} removed{absent}")
        return 0
    refused = f", {counts['refused']} refused" if counts["refused"] else ""
    files, stored = _counted(counts["files"], "file"), _counted(counts["passages"], "passage")
    _say(where, f"{files}, {stored}{refused}")
    if counts["files"]:
        _say("read by", f"bots that run with DOCUMENT_NAMESPACES={request.namespaces[0]}")
    return int(counts["refused"] > 0)


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _say(name: str, what: str) -> None:
    sys.stdout.write(f"{name}: {what}\n")
