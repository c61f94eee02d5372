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
from bot.documents.formats import DocumentRefused, Formats, format_of
from bot.telegram.chat import Chat
from bot.telegram.errors import Refused
from bot.telegram.updates import IncomingMessage, SentFile
from memory.behaviors.call_context import is_first_party
from memory.documents.chunking import Section, passages
from memory.documents.library import Library, Origin, PutResult, documents, key_of
from memory.scopes.changes import NotWritten
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

MAX_PASSAGES = 1_500
"""Of one document."""
MAX_PASSAGES_HERE = 4_000
"""Of all documents of a conversation: some 8 MB of Redis."""


@dataclass(frozen=True, slots=True)
class FileReader:
    """Fetches a file of at most `max_bytes` and cuts its text into passages."""

    chat: Chat
    formats: Formats
    tokens: TokenCounter
    max_bytes: int

    async def passages(self, file: SentFile) -> list[Section]:
        """Return the passages in their order; raise `DocumentRefused` or `TelegramError`."""
        format_ = format_of(file.name, file.mime_type)
        if file.nbytes > self.max_bytes:
            raise DocumentRefused("too_big")
        try:
            content = await self.chat.download(file.file_id, self.max_bytes)
        except Refused as refusal:
            is_too_big = refusal.reason == "too_big"
            raise DocumentRefused("too_big" if is_too_big else "damaged") from refusal
        sections = await self.formats.sections(content, format_)
        cut = await asyncio.to_thread(passages, sections, self.tokens)
        if len(cut) > MAX_PASSAGES:
            raise DocumentRefused("too_long")
        return cut


class Upload:
    """Stores files; `learn` embeds what a conversation stores, in the background."""

    def __init__(
        self,
        reader: FileReader,
        library: Library,
        scopes: Scopes,
        sentences: Sentences,
        learn: Callable[[Scope], None],
    ) -> None:
        self._reader = reader
        self._library = library
        self._scopes = scopes
        self._sentences = sentences
        self._learn = learn

    async def receive(self, sent: IncomingMessage, conversation: Scope) -> Answer | None:
        """Store the file of a message; return what to say, or `None` if its caption is a question.

        The model then answers the caption with the file at hand. Raise `TelegramError`,
        `StoreError`, or `LeaseLost` if this turn has to start again: something was erased in the
        meantime, or the file has just replaced an older one of its name.
        """
        if sent.file is None:
            raise ValueError("a message without a file")
        language = sent.sender.language
        try:
            put = await self._store(sent, sent.file, conversation)
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
        if sent.text:
            return None
        values = {"name": put.document.title, "passages": put.document.passages}
        return Answer(self._sentences.say(language, "documents.read", **values))

    async def _store(self, sent: IncomingMessage, file: SentFile, conversation: Scope) -> PutResult:
        # Read before the file is fetched, so that an erasure from now on refuses the write.
        here = await self._scopes.current(conversation)
        cut = await self._reader.passages(file)
        name = _free_name(here, sent, file.name)
        _check_capacity(here, cut, name)
        origin = Origin(name, nbytes=file.nbytes, sender_id=sent.sender.id)
        return await self._library.put(here, origin, cut)


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
