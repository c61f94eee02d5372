"""Talks that a person brings along from another assistant: counted, asked about, and stored.

They become one document of the conversation, with a dated passage for each question and its
answer. So they are found, cited, listed, exported and deleted like any document, and untrusted.
Nothing is stored before the button. Then the file is fetched and read once more, in a turn; a
passage that an earlier import has stored is not stored again, so a repeated turn changes nothing.
"""

import asyncio

import orjson

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.documents.formats import DocumentRefused
from bot.documents.import_selection import (
    LIST,
    Report,
    Selection,
    list_in,
    read_export,
    read_list,
    select,
    unreported,
)
from bot.reply.parts import Button, with_buttons
from bot.telegram.updates import IncomingMessage, SentFile
from memory.documents.library import Library, Origin, documents
from memory.erasure.confirmations import Confirmations
from memory.scopes.scope_memory import ScopeMemory
from memory.text.tokens import TokenCounter

MAX_PASSAGES_HERE = 4_000
"""Of all documents of a conversation: some 8 MB of Redis."""
_MAX_PASSAGES = 3_000
"""Of one import: some 6 MB of Redis, written at once."""
_TYPES = frozenset({"application/json", "application/zip", "application/x-zip-compressed"})
_SUFFIXES = (".json", ".zip")
_LIST_SUFFIXES = (".txt", ".md")


def may_be_export(file: SentFile) -> bool:
    """Say whether a file is worth fetching that is no document; its content decides later."""
    is_named_so = file.name.lower().endswith(_SUFFIXES)
    return is_named_so or file.mime_type.partition(";")[0].strip().lower() in _TYPES


def looks_like_export(content: bytes) -> bool:
    """Say whether a content could be an export, whatever its name: a zip, or JSON."""
    head = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith((b"PK\x03\x04", b"[", b"{"))


def _list_in(file: SentFile, content: bytes) -> str:
    """Return the text of a file that is a list, "" for an export; raise `DocumentRefused`."""
    is_text = file.name.lower().endswith(_LIST_SUFFIXES)
    if is_text and (listed := list_in(content, is_asked=False)):
        return listed
    if looks_like_export(content):
        return ""
    is_asked = bool(file.import_nonce) or file.read_as == "list"
    if is_text and is_asked and (listed := list_in(content, is_asked=True)):
        return listed
    raise DocumentRefused("type")


class Imports:
    """Asks about exports and stores them."""

    def __init__(
        self,
        library: Library,
        confirmations: Confirmations,
        tokens: TokenCounter,
        sentences: Sentences,
    ) -> None:
        self.library = library
        self._confirmations = confirmations
        self._tokens = tokens
        self._sentences = sentences

    async def preview(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> Answer:
        """Return what an export holds, with a button that imports it.

        Raise `DocumentRefused`, with the reason "type" for a content that is no export.
        """
        found = await self._selected(sent, file, here, content, unreported)
        language, is_list = sent.sender.language, found.source == LIST
        if not found.passages:
            key = "import.list_known" if is_list else "import.known"
            return Answer(self._sentences.say(language, key, source=found.source))
        described = [file.file_id, file.name, file.mime_type, file.nbytes, file.pasted]
        about = orjson.dumps(described).decode()
        nonce = await self._confirmations.ask(here.scope, "import", sent.sender.id, about)
        verbs = ["import", "dont_import"]
        if is_list and not file.pasted:
            verbs.insert(1, "read_document")
        row = (
            Button(self._sentences.text(language, f"buttons.{verb}"), f"{verb}:{nonce}")
            for verb in verbs
        )
        preview = self._sentences.say(
            language, *_keys(found, is_list=is_list), **self._counts(language, found)
        )
        return Answer(with_buttons(preview, *row))

    async def store(
        self,
        sent: IncomingMessage,
        file: SentFile,
        here: ScopeMemory,
        content: bytes,
        report: Report,
    ) -> Answer:
        """Store an export that its sender has agreed to import, and say so.

        Raise `NotConfirmed`, `DocumentRefused`, and `NotWritten` if something was erased since
        `here` was read.
        """
        language, sender_id = sent.sender.language, sent.sender.id
        await self._confirmations.check(here.scope, file.import_nonce, "import", sender_id)
        found = await self._selected(sent, file, here, content, report)
        is_list = found.source == LIST
        if found.passages:
            day = self._sentences.day(language, sent.sent_at)
            key = "import.list_title" if is_list else "import.title"
            title = self._sentences.text(language, key, source=found.source, date=day)
            origin = Origin(
                _free_title(here, title),
                nbytes=file.nbytes,
                sender_id=sender_id,
                imported_from=found.source,
            )
            await self.library.put(here, origin, found.passages)
        key = "import.list_done" if is_list else "import.done"
        return Answer(self._sentences.say(language, key, source=found.source))

    async def _selected(
        self,
        sent: IncomingMessage,
        file: SentFile,
        here: ScopeMemory,
        content: bytes,
        report: Report,
    ) -> Selection:
        listed = file.pasted or _list_in(file, content)
        answer = read_list(listed, sent.sent_at) if listed else await read_export(content)
        if not answer["talks"]:
            raise DocumentRefused("nothing_to_import")
        stored = documents(here)
        room = MAX_PASSAGES_HERE - sum(each.passages for each in stored.values())
        known = {
            key
            for chunk in here.chunks
            if (document := stored.get(chunk.document)) and document.imported_from
            for key in ((chunk.place, chunk.said_at, chunk.text), (chunk.place, 0, chunk.text))
        }
        offered = (answer, known, min(room, _MAX_PASSAGES), self._tokens, report)
        found = await asyncio.to_thread(select, *offered)
        if found.beyond and not found.passages:
            raise DocumentRefused("full")
        return found

    def _counts(self, language: str, found: Selection) -> dict[str, object]:
        return {
            "source": found.source,
            "talks": found.talks,
            "messages": found.messages,
            "facts": found.facts,
            "first": self._sentences.day(language, found.first_at),
            "last": self._sentences.day(language, found.last_at),
            "known": found.known,
            "beyond": found.beyond,
        }


def _keys(found: Selection, *, is_list: bool) -> list[str]:
    if is_list:
        return [
            "import.list_preview",
            *["import.some_known"] * bool(found.known),
            *["import.beyond"] * bool(found.beyond),
            "import.list_ask",
        ]
    keys = ["import.preview"]
    keys += ["import.dates"] * bool(found.first_at)
    keys += ["import.some_known"] * bool(found.known)
    keys += ["import.beyond"] * bool(found.beyond)
    return [*keys, "import.ask"]


def _free_title(here: ScopeMemory, title: str) -> str:
    """Return the title, with a number if an earlier import of the day has it."""
    taken = {each.title for each in documents(here).values()}
    number, free = 1, title
    while free in taken:
        number += 1
        free = f"{title} ({number})"
    return free
