"""`python -m bot ingest`: puts the operator's documents into a namespace, or takes them out.

The bots that name the namespace in `DOCUMENT_NAMESPACES` read them; nobody else does.
"""

import argparse
import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.assistant import open_models
from bot.documents.formats import SUFFIXES, Formats, Limits, format_of
from bot.documents.refusals import DocumentRefused
from bot.metering.metrics import Metrics
from bot.metering.usage import UsageRecorder, billed_to
from bot.process import redis_address
from config.settings import Settings
from config.values import NAMESPACE
from memory.documents.chunking import passages
from memory.documents.library import Library, Origin, key_of
from memory.embeddings import EmbeddingsUnavailable
from memory.keys import Conversation
from memory.memory import Memory, MemoryOptions
from memory.notebook.notebooks import NotWritten
from memory.protocol.turns import TurnTimes
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter

LIMITS = Limits(pages=5_000, chars=20_000_000, pdf_s=300, pdf_cpu_s=300, pdf_mb=2_048)
"""The operator's own files; larger than what strangers may send."""

_SECONDS_A_DAY = 86_400


@dataclass(frozen=True, slots=True)
class Order:
    """What is to be done with a file, or with those of a folder, known by their names in it."""

    path: Path
    namespace: str
    link: str = ""
    removes: bool = False

    def files(self) -> Iterator[tuple[str, Path]]:
        """Yield names and paths, in order."""
        if not self.path.is_dir():
            yield self.path.name, self.path
            return
        for file in sorted(self.path.rglob("*")):
            if file.suffix.lower() in SUFFIXES and file.is_file():
                yield str(file.relative_to(self.path)), file


def run_ingest(settings: Settings, options: argparse.Namespace) -> int:
    """Carry out the command and say what was done; return the exit status."""
    if settings.telegram_bot_token is None:
        sys.stderr.write("TELEGRAM_BOT_TOKEN names the bot whose documents these are\n")
        return 1
    if not NAMESPACE.fullmatch(options.namespace):
        sys.stderr.write("--namespace takes a name of A-Z a-z 0-9 . _ -\n")
        return 1
    order = Order(options.path, options.namespace, options.link, options.remove)
    if not order.removes and not order.path.exists():
        sys.stderr.write(f"there is no {order.path}\n")
        return 1
    bot_id = int(settings.telegram_bot_token.get_secret_value().partition(":")[0])
    with redis_address(settings) as redis:
        return asyncio.run(_ingest(settings, redis, bot_id, order))


async def _ingest(settings: Settings, redis: str, bot_id: int, order: Order) -> int:
    tokens = await TokenCounter.load()
    client = await RedisClient.open(
        redis,
        max_connections=settings.redis_max_connections,
        tls_verify=settings.verifies_redis_tls,
    )
    try:
        recorder = UsageRecorder()
        async with open_models(settings, Metrics(), recorder) as models:
            memory = Memory(client, bot_id, tokens, models.embedder, _options(settings))
            scope = Conversation.of_namespace(order.namespace)
            async with recorder.writing(memory.usage):
                with billed_to(scope):
                    return await ingest(memory, order)
    finally:
        await client.close()


async def ingest(memory: Memory, order: Order) -> int:
    """Put or remove the documents of an order, embed what is new; return the exit status."""
    scope = Conversation.of_namespace(order.namespace)
    library = Library(memory.store, memory.notebooks)
    failed = False
    for name, file in order.files():
        if order.removes:
            found = await library.remove(scope, key_of(name))
            _say(name, "removed" if found else "not there")
            continue
        try:
            _say(name, await _put(memory, library, scope, Origin(name, order.link), file))
        except (DocumentRefused, NotWritten) as refusal:
            failed = True
            _say(name, f"refused: {refusal}")
    try:
        await memory.learn(scope)
    except EmbeddingsUnavailable:
        _say("embeddings", "unavailable now; a running bot makes up for it")
    return int(failed)


async def _put(
    memory: Memory, library: Library, scope: Conversation, origin: Origin, file: Path
) -> str:
    """Put one document and say how that went."""
    content = await asyncio.to_thread(file.read_bytes)
    sections = await Formats(LIMITS).sections(content, format_of(file.name, ""))
    cut = await asyncio.to_thread(passages, sections, memory.tokens)
    origin = Origin(origin.name, origin.link, len(content))
    put = await library.put(await memory.notebooks.read(scope), origin, cut)
    return f"{put.document.passages} passages" if put.is_new else "unchanged"


def _say(name: str, what: str) -> None:
    sys.stdout.write(f"{name}: {what}\n")


def _options(settings: Settings) -> MemoryOptions:
    return MemoryOptions(
        ttl_s=settings.memory_ttl_days * _SECONDS_A_DAY,
        tail=2 * settings.window_messages,
        cache_bytes=settings.cache_mb * 2**20,
        times=TurnTimes(),
    )
