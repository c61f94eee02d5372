"""What documents add to the bot."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import BotCommand
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry, PagedList
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.documents.scans import ScanReader, page_text
from bot.features.documents.settings import DocumentSettings
from bot.features.documents.text_rag import TextRag, TextRagOptions
from bot.features.documents.upload import UploadStep
from bot.telegram.updates import ButtonPress
from memory.behaviors.behavior import reaches_of
from memory.documents.library import Library
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings, memory, sentences = services.settings, services.memory, services.sentences
    library = Library(memory.store, memory.scopes)
    listed = PagedList(DocumentList(library, sentences, services.access), sentences)
    scans = None
    if settings.shows_pictures:
        scans = ScanReader(partial(page_text, services.models.chats[0]))
        memory.scopes.on_erased.append(scans.forget)
    upload = UploadStep(services.files, memory, scans, sentences, services.learn)
    return Feature(
        name="documents",
        commands=[BotCommand("documents", listed.show, buttons={DocumentList.verb: listed.press})],
        steps=[upload.answer],
        behaviors=[TextRag(memory.scopes, memory.tokens, _options(services))],
        ways=["way_file"],
    )


def _options(services: Services) -> TextRagOptions:
    """Return what the operator chose; what no feature replaces stays ours."""
    settings, replaced = services.own(DocumentSettings), services.replaced
    options = TextRagOptions(
        namespaces=reaches_of(settings.document_namespaces),
        by_tool=settings.documents == "tool",
    )
    return replace(
        options,
        prompt=replaced.document_prompt or options.prompt,
        tool_prompt=replaced.document_tool_prompt or options.tool_prompt,
        passage=replaced.document_passage or options.passage,
    )


log = structlog.get_logger(__name__)


class DocumentList:
    """Lists documents and deletes them; in a group only for whoever sent one, and for admins."""

    verb = "doc"
    actions: Mapping[str, str] = {ASK: "buttons.delete_entry"}

    def __init__(self, library: Library, sentences: Sentences, access: Access) -> None:
        self._library = library
        self._sentences = sentences
        self._access = access

    async def content(self, language: str, conversation: Scope) -> ListContent:
        """Return the documents, newest first."""
        entries = [
            ListEntry(
                document.key,
                "documents.line",
                {
                    "name": document.title,
                    "passages": document.passages,
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

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Delete a document."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        await self._library.remove(conversation, code)
        log.info("document deleted")
        return ListChange("lists.deleted")
