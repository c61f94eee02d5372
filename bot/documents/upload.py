"""Stores a file that somebody sent: fetched, read, cut into passages.

Storing the same file twice changes nothing, so a repeated turn does no harm.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

import structlog

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.documents.formats import OFFICE, DocumentRefused, Formats, format_named, format_of
from bot.documents.import_progress import ImportProgress
from bot.documents.imports import MAX_PASSAGES_HERE, Imports, may_be_export
from bot.documents.scans import ScannedPages, ScanReader
from bot.telegram.chat import Chat
from bot.telegram.errors import Refused
from bot.telegram.updates import IncomingMessage, SentFile
from memory.behaviors.call_context import is_first_party
from memory.documents.chunking import Section, passages
from memory.documents.library import Origin, PutResult, documents, key_of
from memory.erasure.confirmations import NotConfirmed
from memory.scopes.changes import NotWritten
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

MAX_PASSAGES = 1_500
"""Of one document."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Fetches files of at most `max_bytes` and cuts their text into passages.

    Without `scans` a PDF whose pages are pictures is refused.
    """

    chat: Chat
    formats: Formats
    tokens: TokenCounter
    max_bytes: int
    scans: ScanReader | None = None

    async def fetch(self, file: SentFile) -> bytes:
        """Return the content of a file; raise `DocumentRefused` or `TelegramError`."""
        if file.pasted:
            return file.pasted.encode()
        if file.nbytes > self.max_bytes:
            raise DocumentRefused("too_big")
        try:
            return await self.chat.download(file.file_id, self.max_bytes)
        except Refused as refusal:
            is_too_big = refusal.reason == "too_big"
            raise DocumentRefused("too_big" if is_too_big else "damaged") from refusal

    async def passages(
        self, file: SentFile, content: bytes
    ) -> tuple[list[Section], ScannedPages | None]:
        """Return the passages of a document in their order, and which pages a model has read.

        Raise `DocumentRefused`, or `ModelError` if a model has to read pages and does not answer.
        """
        format_, scan = format_of(file.name, file.mime_type), None
        try:
            sections = await self.formats.sections(content, format_)
        except DocumentRefused as refusal:
            if refusal.reason != "no_text" or format_ != "pdf" or self.scans is None:
                raise
            scan = await self.scans.pages(file.file_id, content)
            sections = list(scan.sections)
        cut = await asyncio.to_thread(passages, sections, self.tokens)
        if len(cut) > MAX_PASSAGES:
            raise DocumentRefused("too_long")
        return cut, scan


class Upload:
    """Stores files; `learn` embeds what a conversation stores, in the background."""

    def __init__(
        self,
        reader: FileReader,
        imports: Imports,
        scopes: Scopes,
        sentences: Sentences,
        learn: Callable[[Scope], None],
    ) -> None:
        self._reader = reader
        self._imports = imports
        self._progress = ImportProgress(reader.chat, sentences)
        self._library = imports.library
        self._scopes = scopes
        self._sentences = sentences
        self._learn = learn

    async def receive(self, sent: IncomingMessage, conversation: Scope) -> Answer | str:
        """Store the file of a message; return what to say, or a text if its caption is a question.

        The model then answers the caption with the file at hand; the text, often "", stands before
        its answer. Raise `TelegramError`, `ModelError`, `StoreError`, or `LeaseLost` if this turn
        has to start again: something was erased in the meantime, or the file has just replaced an
        older one of its name.
        """
        if sent.file is None:
            raise ValueError("a message without a file")
        language = sent.sender.language
        try:
            # Read before the file is fetched, so that an erasure from now on refuses the write.
            here = await self._scopes.current(conversation)
            _check_type(sent, sent.file)
            content = await self._reader.fetch(sent.file)
            if answer := await self._import(sent, sent.file, here, content):
                return answer
            put, scan = await self._store(sent, sent.file, here, content)
        except NotConfirmed:
            return Answer(self._sentences.say(language, "clear.expired"))
        except DocumentRefused as refusal:
            log.info("file refused", reason=refusal.reason)
            max_mb = f"{self._reader.max_bytes / 2**20:.3g}"
            key = f"documents.refused_{refusal.reason}"
            return Answer(self._sentences.say(language, key, name=sent.file.name, mb=max_mb))
        except NotWritten:
            raise LeaseLost(conversation.tag) from None
        log.info("file stored", passages=put.document.passages, is_new=put.is_new)
        self._learn(conversation)
        if put.replaced:
            raise LeaseLost(conversation.tag)
        values: dict[str, object] = {"name": put.document.title, "passages": put.document.passages}
        keys = ["documents.read"]
        if scan:
            values |= {"pages": ", ".join(map(str, scan.numbers)), "count": scan.count}
            keys.insert(0, "documents.scanned")
        if not sent.text:
            return Answer(self._sentences.say(language, *keys, **values))
        return "".join(f"{self._sentences.text(language, key, **values)}\n\n" for key in keys[:-1])

    async def _import(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> Answer | None:
        """Ask about an export or store it; return `None` for any other file."""
        if file.import_nonce:
            async with self._progress.shown(sent) as report:
                stored = await self._imports.store(sent, file, here, content, report)
            log.info("export imported")
            self._learn(here.scope)
            return stored
        if file.read_as == "document" or (sent.is_group and not file.pasted):
            return None
        if format_named(file.name, file.mime_type) in OFFICE:
            return None
        try:
            return await self._imports.preview(sent, file, here, content)
        except DocumentRefused as refusal:
            if refusal.reason != "type":
                raise
            return None

    async def _store(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> tuple[PutResult, ScannedPages | None]:
        cut, scan = await self._reader.passages(file, content)
        name = _free_name(here, sent, file.name)
        _check_capacity(here, cut, name)
        origin = Origin(name, nbytes=file.nbytes, sender_id=sent.sender.id)
        return await self._library.put(here, origin, cut), scan


def _check_type(sent: IncomingMessage, file: SentFile) -> None:
    """Raise `DocumentRefused` for a file that is not worth fetching.

    Exports are taken in private only: they hold all that a person has told an assistant.
    """
    if not file.pasted and not may_be_export(file):
        format_of(file.name, file.mime_type)
    elif sent.is_group:
        raise DocumentRefused("in_group")


def _free_name(here: ScopeMemory, sent: IncomingMessage, name: str) -> str:
    """Return the name; in a group with a number if another person's document has it.

    Not even an administrator replaces another person's document without knowing: they have to
    delete it first.
    """
    stored, stem, number = documents(here), PurePath(name), 1
    while sent.is_group and (other := stored.get(key_of(name))):
        if is_first_party(sent.sender.id, [other.sender_id]):
            break
        number += 1
        name = f"{stem.stem} ({number}){stem.suffix}"
    return name


def _check_capacity(here: ScopeMemory, cut: list[Section], name: str) -> None:
    """Raise `DocumentRefused` if the conversation's documents would have too many passages."""
    others = (each for each in documents(here).values() if each.title != name)
    if sum(each.passages for each in others) + len(cut) > MAX_PASSAGES_HERE:
        raise DocumentRefused("full")
