"""`/documents`: the files that were read in a conversation, each with a button that deletes it."""

from collections.abc import Mapping

import structlog

from bot.commands.access import Access
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, ListEntry
from bot.commands.sentences import Sentences
from bot.telegram.updates import ButtonPress
from memory.documents.library import Library
from memory.erasure.confirmations import NotConfirmed
from memory.store.keys import Scope

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
