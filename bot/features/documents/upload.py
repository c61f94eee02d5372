"""The step that stores a file that somebody sent: read, cut into passages, kept.

Storing the same file twice changes nothing, so a repeated turn does no harm.
"""

import asyncio
from collections.abc import Callable
from pathlib import PurePath

import structlog

from bot.commands.sentences import Sentences
from bot.features.documents.formats import Limits, format_of, read_sections
from bot.features.documents.scans import ScannedPages, ScanReader
from bot.parsing.answers import NotRead
from bot.telegram.updates import IncomingMessage, SentFile
from bot.turn.answer import FileFetcher
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import is_first_party
from memory.documents.chunking import Section, passages
from memory.documents.library import Library, Origin, PutResult, documents, key_of, room_of
from memory.memory import Memory
from memory.scopes.changes import NotWritten
from memory.scopes.history import ChatHistory
from memory.scopes.scope_memory import ScopeMemory
from memory.store.errors import LeaseLost
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

MAX_PASSAGES = 1_500
"""Of one document."""


class UploadStep:
    """Stores files; `learn` embeds what a conversation stores, in the background.

    Without `scans` pages that are pictures are refused.
    """

    def __init__(
        self,
        files: FileFetcher,
        memory: Memory,
        scans: ScanReader | None,
        sentences: Sentences,
        learn: Callable[[Scope], None],
    ) -> None:
        self._files = files
        self._library = Library(memory.store, memory.scopes)
        self._tokens = memory.tokens
        self._scans = scans
        self._sentences = sentences
        self._learn = learn

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Store the file; return what to say, or None if its caption is a question for the model.

        Raise `NotRead`, `TelegramError`, `ModelError`, `StoreError`, or `LeaseLost` if this turn
        has to start again: something was erased in the meantime, or the file has just replaced an
        older one of its name.
        """
        sent, conversation = request.last, history.conversation
        if sent.kind != "document" or sent.file is None:
            return None
        language, say = request.language, self._sentences.say
        format_of(sent.file.name, sent.file.mime_type)  # before it is fetched
        fetched = await self._files.fetch(request, sent.file, conversation)
        try:
            put, scan = await self._store(sent, sent.file, fetched.here, fetched.content)
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
            return Outbox(request.to, say(language, *keys, **values))
        for key in keys[:-1]:
            request.run.before += f"{self._sentences.text(language, key, **values)}\n\n"
        return None

    async def _store(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> tuple[PutResult, ScannedPages | None]:
        cut, scan = await self._passages(here.scope, file, content)
        name = _free_name(here, sent, file.name)
        if len(cut) > room_of(here, but=name):
            raise NotRead("full")
        origin = Origin(name, nbytes=file.nbytes, sender_id=sent.sender.id)
        if not (scan and self._scans):
            return await self._library.put(here, origin, cut), scan
        with self._scans.storing(here.scope) as note_replaced:
            put = await self._library.put(here, origin, cut)
            if put.replaced:
                note_replaced()
        return put, scan

    async def _passages(
        self, conversation: Scope, file: SentFile, content: bytes
    ) -> tuple[list[Section], ScannedPages | None]:
        """Return the passages of a document in their order, and which pages a model has read."""
        format_, scan = format_of(file.name, file.mime_type), None
        try:
            sections = await read_sections(content, format_, Limits())
        except NotRead as refusal:
            if refusal.reason != "no_text" or format_ != "pdf" or self._scans is None:
                raise
            scan = await self._scans.pages(conversation, file.file_id, content)
            sections = list(scan.sections)
        cut = await asyncio.to_thread(passages, sections, self._tokens)
        if len(cut) > MAX_PASSAGES:
            raise NotRead("too_long")
        return cut, scan


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
