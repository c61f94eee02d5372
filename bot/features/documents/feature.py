"""What documents add to the bot: `/documents`, and the step that stores a file that somebody sent.

Storing the same file twice changes nothing, so a repeated turn does no harm.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from pathlib import PurePath

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import BotCommand
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.documents.formats import Limits, format_of, read_sections
from bot.features.documents.scans import PageText, text_of_page, with_scans
from bot.features.documents.settings import DocumentSettings
from bot.features.documents.text_rag import TextRag, TextRagOptions
from bot.model.model_errors import ModelError
from bot.parsing.answers import NotRead
from bot.telegram.updates import ButtonPress, IncomingMessage, SentFile
from bot.turn.answer import FileFetcher
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.behavior import reaches_of
from memory.behaviors.context import is_first_party
from memory.documents import (
    Chunk,
    Library,
    Origin,
    PutResult,
    Section,
    documents,
    key_of,
    passages,
    room_of,
)
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.changes import NotWritten
from memory.scopes.history import ChatHistory
from memory.scopes.scope_memory import ScopeMemory
from memory.store.errors import LeaseLost
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

MAX_PASSAGES = 1_500  # passages of one document


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory, sentences = services.settings, services.memory, services.sentences
    listed = PagedList(DocumentList(Library(memory.scopes), sentences, services.access), sentences)
    # Another feature has this setting. Without it, nothing forbids the model to look at pages.
    is_blind = getattr(settings, "image_detail", "") == "off"
    page_text = None if is_blind else partial(text_of_page, services.models.chats[0])
    upload = UploadStep(services.files, memory, page_text, sentences, services.learn)
    own, replaced, ours = services.own(DocumentSettings), services.replaced, TextRagOptions()
    options = TextRagOptions(
        namespaces=reaches_of(own.document_namespaces),
        by_tool=own.documents == "tool",
        prompt=replaced.document_prompt or ours.prompt,
        tool_prompt=replaced.document_tool_prompt or ours.tool_prompt,
        passage=replaced.document_passage or ours.passage,
    )
    return Feature(
        name="documents",
        commands=[BotCommand("documents", listed.show, buttons={DocumentList.verb: listed.press})],
        file_steps={"document": upload.answer},
        behaviors=[TextRag(memory.scopes, memory.tokens, options)],
        ways=["way_file"],
    )


class DocumentList:
    """Lists documents and deletes them; in a group only for whoever sent one, and for admins."""

    verb = "doc"
    actions: Mapping[str, str] = {ASK: "buttons.delete_entry"}

    def __init__(self, library: Library, sentences: Sentences, access: Access) -> None:
        self._library = library
        self._sentences = sentences
        self._access = access

    async def content(self, language: str, conversation: Scope, _: int) -> ListContent:
        """Return the documents, newest first."""
        entries = [
            ListEntry(
                document.key,
                "documents.line",
                {
                    "name": document.title,
                    "kb": max(1, round(document.nbytes / 1024)),
                    "date": self._sentences.day(language, document.added_at),
                },
            )
            for document in await self._library.listed(conversation)
        ]
        empty = () if entries else (self._sentences.text(language, "documents.none"),)
        return ListContent("documents.listed", entries, above=empty)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` if the document is somebody else's and still there."""
        listed = await self._library.listed(conversation)
        if senders := {each.sender_id for each in listed if each.key == code}:
            await self._access.check(pressed, senders)

    async def act(self, _: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        """Delete a document."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        await self._library.remove(here, code)
        log.info("document deleted")
        return ListChange("lists.deleted")


@dataclass(frozen=True, slots=True, eq=False)
class UploadStep:
    """Stores files."""

    files: FileFetcher
    memory: Memory
    page_text: PageText | None  # None: pages that are pictures are refused
    sentences: Sentences
    learn: Callable[[Scope], None]  # embeds what a conversation stores, in the background

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Store the file; return what to say, or None if its caption is a question for the model.

        Raise `NotRead`, `TelegramError`, `ModelError`, `StoreError`, or `LeaseLost` if this turn
        has to start again: something was erased in the meantime, or the file has just replaced an
        older one of its name.
        """
        sent, conversation = request.last, history.conversation
        if sent.file is None:
            return None
        language, say = request.language, self.sentences.say
        format_of(sent.file.name, sent.file.mime_type)  # before it is fetched
        fetched = await self.files.fetch(request, sent.file, conversation)
        try:
            put, scanned = await self._store(sent, sent.file, fetched.here, fetched.content)
        except NotWritten:
            raise LeaseLost(conversation.tag) from None
        log.info("file stored", passages=put.document.passages, is_new=put.is_new)
        self.learn(conversation)
        if put.replaced:
            raise LeaseLost(conversation.tag)
        values = {"name": put.document.title, **scanned}
        keys = ["documents.scanned"] * bool(scanned) + ["documents.read"]
        if not sent.text:
            return Outbox(request.to, say(language, *keys, **values))
        for key in keys[:-1]:
            request.run.before += f"{self.sentences.text(language, key, **values)}\n\n"
        return None

    async def _store(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> tuple[PutResult, dict[str, object]]:
        """Store a file; also return which of its pages were read as pictures, and of how many.

        A scan that is stored already is not read again: the model would find other words, which
        would replace those.
        """
        format_, name = format_of(file.name, file.mime_type), _free_name(here, sent, file.name)
        origin = Origin(name, "", file.nbytes, sent.sender.id, sent.sent_at)
        scanned: dict[str, object] = {}
        try:
            sections = await read_sections(content, format_, Limits())
        except NotRead as refusal:
            if refusal.reason != "no_text" or format_ != "pdf":
                raise
            sections = []
        if format_ == "pdf" and self.page_text:
            digest = await asyncio.to_thread(sha256, content)
            of_scan = replace(origin, digest=digest.hexdigest())
            stored = _stored(here, of_scan)
            with suppress(NotRead, *([ModelError] if sections else [])):
                sections, scanned = await with_scans(self.page_text, content, sections, stored)
                origin = of_scan
        if not sections:
            raise NotRead("no_text")
        cut = await asyncio.to_thread(
            passages, sections, self.memory.tokens, max_count=MAX_PASSAGES + 1
        )
        if len(cut) > MAX_PASSAGES:
            raise NotRead("too_long")
        if len(cut) > room_of(here, but=name):
            raise NotRead("full")
        return await Library(self.memory.scopes).put(here, origin, cut), scanned


def _stored(here: ScopeMemory, origin: Origin) -> list[Section]:
    """Return the passages of this very file, none if it is not stored."""
    known = documents(here).get(key_of(origin.name))
    if known is None or known.digest != origin.digest:
        return []
    chunks = (each for each in here.of_kind(Chunk) if each.document == known.key)
    return [Section(each.text, each.place) for each in chunks if each.added_at == known.added_at]


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
