"""Takes in a file that somebody sent: fetched, read, cut into passages, stored; once or again.

The same file taken in twice changes nothing, so a turn that is repeated does no harm.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePath

import structlog

from bot.commands.general import Answer
from bot.commands.sentences import Sentences
from bot.documents.formats import Formats, format_of
from bot.documents.refusals import DocumentRefused
from bot.telegram.chat import Chat
from bot.telegram.errors import Refused
from bot.telegram.updates import IncomingMessage, SentFile
from memory.behaviors.call_context import is_first_party
from memory.documents.chunking import Section, passages
from memory.documents.library import Library, Origin, Put, documents, key_of
from memory.queue.turns import LeaseLost
from memory.scopes.changes import NotWritten
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

MAX_PASSAGES = 1_500
"""Of one document."""
MAX_PASSAGES_HERE = 4_000
"""Of all documents of a conversation: some 8 MB of Redis."""


@dataclass(frozen=True, slots=True)
class Desk:
    """What taking in a file needs: where it is read, kept, counted; `most_bytes` of a file."""

    formats: Formats
    library: Library
    scopes: Scopes
    tokens: TokenCounter
    max_bytes: int


class Upload:
    """Takes in files; `learn` has a conversation embedded in the background."""

    def __init__(
        self,
        desk: Desk,
        chat: Chat,
        sentences: Sentences,
        learn: Callable[[Scope], None],
    ) -> None:
        self._desk = desk
        self._chat = chat
        self._sentences = sentences
        self._learn = learn

    async def receive(self, sent: IncomingMessage, conversation: Scope) -> Answer | None:
        """Take in the file of a message and return what is to be said of it.

        Nothing, where it is at hand now and the words that came with it are still to be answered.
        Raise `TelegramError`, `StoreError`, and `LeaseLost` where this turn has to begin again:
        something was erased meanwhile, or an older content of this file has just been.
        """
        if sent.file is None:
            raise ValueError("a message without a file")
        language = sent.sender.language
        try:
            put = await self._take_in(sent, sent.file, conversation)
        except DocumentRefused as refusal:
            log.info("file refused", reason=refusal.reason)
            max_mb = f"{self._desk.max_bytes / 2**20:.3g}"
            key = f"documents.refused_{refusal.reason}"
            return Answer(self._sentences.say(language, key, name=sent.file.name, mb=max_mb))
        except NotWritten:
            raise LeaseLost(conversation.tag) from None
        log.info("file taken in", passages=put.document.passages, is_new=put.is_new)
        self._learn(conversation)
        if put.replaced:
            raise LeaseLost(conversation.tag)
        if sent.text:
            return None
        told = {"name": put.document.title, "passages": put.document.passages}
        return Answer(self._sentences.say(language, "documents.read", **told))

    async def _take_in(self, sent: IncomingMessage, file: SentFile, conversation: Scope) -> Put:
        # Read before the file is fetched: what is erased from now on refuses the writing.
        scope_memory = await self._desk.scopes.current(conversation)
        cut = await self._passages(file)
        name = _own_name(scope_memory, sent, file.name)
        origin = Origin(name, nbytes=file.nbytes, sender_id=sent.sender.id)
        _check_room(scope_memory, cut, name)
        return await self._desk.library.put(scope_memory, origin, cut)

    async def _passages(self, file: SentFile) -> list[Section]:
        format_ = format_of(file.name, file.mime_type)
        if file.nbytes > self._desk.max_bytes:
            raise DocumentRefused("too_big")
        try:
            content = await self._chat.download(file.file_id, self._desk.max_bytes)
        except Refused as refusal:
            raise DocumentRefused(
                "too_big" if refusal.reason == "too_big" else "damaged"
            ) from refusal
        sections = await self._desk.formats.sections(content, format_)
        cut = await asyncio.to_thread(passages, sections, self._desk.tokens)
        if len(cut) > MAX_PASSAGES:
            raise DocumentRefused("too_long")
        return cut


def _own_name(scope_memory: ScopeMemory, sent: IncomingMessage, name: str) -> str:
    """Return the name, in a group with a number where others' documents have it: these stay.

    Not even an administrator replaces another's document unawares; they remove it first.
    """
    known, stem, number = documents(scope_memory), PurePath(name), 1
    while sent.is_group and (other := known.get(key_of(name))):
        if is_first_party(sent.sender.id, [other.sender_id]):
            break
        number += 1
        name = f"{stem.stem} ({number}){stem.suffix}"
    return name


def _check_room(scope_memory: ScopeMemory, cut: list[Section], name: str) -> None:
    others = (each for each in documents(scope_memory).values() if each.title != name)
    if sum(each.passages for each in others) + len(cut) > MAX_PASSAGES_HERE:
        raise DocumentRefused("full")
