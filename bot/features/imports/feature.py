"""Talks that a person brings along from another assistant: counted, asked about, and stored.

They become one untrusted document of the conversation. Nothing is stored before the button. Then
the file is fetched and read once more, in a turn; a repeated turn changes nothing.
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from html import unescape
from itertools import chain, count, islice
from typing import Any

import orjson
import structlog

from bot.commands.bot_command import Answer, BotCommand, ButtonHandler, ShownOnTop
from bot.commands.immediate import message_of, put_press
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.imports.selection import LIST, READER, Selection, list_in, read_list, select
from bot.parsing.answers import NotRead
from bot.parsing.processes import parse
from bot.reply.parts import Parts
from bot.telegram.updates import ButtonPress, IncomingMessage, SentFile
from bot.turn.answer import FileFetcher
from bot.turn.outbox import Outbox
from bot.turn.request import Fetched, Request
from memory.documents import Chunk, Library, Origin, documents, room_of
from memory.erasure.questions import NotConfirmed, Question
from memory.memory import Memory
from memory.scopes.changes import NotWritten
from memory.scopes.history import ChatHistory
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.untrusted_text import seen_by_people

log = structlog.get_logger(__name__)

DOCUMENT = "document"  # what a button says of a file that looks like a list
_MAX_PASSAGES = 3_000  # of one import: some 6 MB of Redis, written at once
_EXPORT_TYPES = frozenset({"application/json", "application/zip", "application/x-zip-compressed"})
_EXPORT_SUFFIXES = (".json", ".zip")
_LIST_SUFFIXES = (".txt", ".md")
_EXAMPLES, _MAX_EXAMPLE_CHARS = 3, 80


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    imports = Importing(services.files, memory, sentences, services.learn)
    buttons: Mapping[str, ButtonHandler] = {
        "import": imports.agree,
        "dont_import": imports.refuse,
        "read_document": partial(imports.agree, read_as=DOCUMENT),
    }
    command = BotCommand(
        "import", imports.say_how, "private", buttons, takes_file=True, section="memory"
    )
    return Feature(name="imports", commands=[command], file_steps={"document": imports.answer})


@dataclass(frozen=True, slots=True, eq=False)
class Importing:
    """Asks about exports and lists, hears the answers, and stores what a person agreed to."""

    files: FileFetcher
    memory: Memory
    sentences: Sentences
    learn: Callable[[Scope], None]

    async def say_how(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what can be sent; a list behind the command never comes here."""
        key = "import.only_private" if asked.is_group else "import.how"
        return Answer(self.sentences.say(asked.sender.language, key))

    async def agree(
        self, pressed: ButtonPress, here: Scope, nonce: str, *, read_as: str = ""
    ) -> Parts:
        """Put the file into the mailbox again, now with the agreement; its turn stores it.

        With `read_as` its turn reads it as a document, although it looks like a list.
        """
        questions = self.memory.questions
        about = await questions.check(here, nonce, "import", pressed.sender.id)
        if not about or not await questions.begin(here, nonce, pressed.update_id):
            return ()
        file_id, name, mime_type, nbytes, pasted = orjson.loads(about)
        file = SentFile(file_id, name, mime_type, nbytes, "" if read_as else nonce, pasted, read_as)
        agreed = replace(message_of(pressed), kind="document", file=file)
        try:
            await put_press(self.memory.mailbox, here, agreed)
        except ShownOnTop as full:  # this press has used the question up
            raise NotConfirmed("full") from full
        return self.sentences.say(pressed.sender.language, "import.storing")

    async def refuse(self, pressed: ButtonPress, here: Scope, nonce: str) -> Parts:
        """Forget the question, unless it was answered before; nothing was stored but that."""
        questions, sender_id = self.memory.questions, pressed.sender.id
        asked = await questions.check(here, nonce, "import", sender_id)
        if not asked or not await questions.begin(here, nonce, pressed.update_id):
            return ()
        await questions.withdraw(here, nonce, sender_id)
        return self.sentences.say(pressed.sender.language, "import.refused")

    async def answer(self, request: Request, history: ChatHistory) -> Outbox | None:
        """Return the question or the confirmation; None for a file that holds no talks.

        Exports are taken in private only, where the content decides whether a file is one: they
        hold all that a person has told an assistant. Raise `NotRead`, `TelegramError`,
        `StoreError`, or `LeaseLost` if something was erased meanwhile.
        """
        sent, file = request.last, request.last.file
        if file is None:
            return None
        name, mime_type = file.name.lower(), file.mime_type.partition(";")[0].strip().lower()
        is_talk = bool(file.pasted) or name.endswith(_EXPORT_SUFFIXES)
        if is_talk and sent.is_group:
            raise NotRead("in_group")
        may_be_talk = mime_type in _EXPORT_TYPES or name.endswith(_LIST_SUFFIXES)
        may_be_talk = is_talk or (may_be_talk and not sent.is_group)
        if file.read_as == DOCUMENT or not may_be_talk:
            return None
        fetched = await self.files.fetch(request, file, history.conversation)
        try:
            if not file.nonce:
                return Outbox(request.to, await self._preview(sent, file, fetched))
            stored = await self._store(sent, file, fetched)
            log.info("export imported")
            self.learn(history.conversation)
            return Outbox(request.to, stored)
        except NotConfirmed:
            return Outbox(request.to, self.sentences.say(request.language, "clear.expired"))
        except NotWritten:
            raise LeaseLost(history.conversation.tag) from None
        except NotRead as refusal:
            # A text that begins like JSON may be no JSON. It is an export for sure only if its
            # name or the person says so.
            may_be_text = refusal.reason == "damaged" and not (is_talk or file.read_as)
            if file.nonce or not (refusal.reason == "type" or may_be_text):
                raise
            return None

    async def _preview(self, sent: IncomingMessage, file: SentFile, fetched: Fetched) -> Parts:
        """Return what an export holds, with a button that imports it.

        Raise `NotRead`, with the reason "type" for a content that is no export.
        """
        found = await self._selected(sent, file, fetched)
        language, is_list = sent.sender.language, found.source == LIST
        if not found.passages:
            key = "import.list_known" if is_list else "import.known"
            return self.sentences.say(language, key, source=found.source)
        described = [file.file_id, file.name, file.mime_type, file.nbytes, file.pasted]
        about = orjson.dumps(described).decode()
        verbs = ["import", "dont_import"]
        if is_list and not file.pasted:
            verbs.insert(1, "read_document")
        names = ("source", "talks", "messages", "facts", "known", "beyond")
        first, last = (self.sentences.day(language, at) for at in (found.first_at, found.last_at))
        counts = {name: getattr(found, name) for name in names} | {"first": first, "last": last}
        keys = ["import.list_preview" if is_list else "import.preview"]
        dates = "import.one_day" if first == last else "import.dates"
        keys += [dates] * (bool(found.first_at) and not is_list)
        keys += ["import.some_known"] * bool(found.known) + ["import.beyond"] * bool(found.beyond)
        keys.append("import.list_ask" if is_list else "import.ask")
        preview = self.sentences.say(language, *keys, **counts)
        question = Question("import", sent.sender.id, about)
        return self.sentences.ask(language, preview, question, *verbs)

    async def _store(self, sent: IncomingMessage, file: SentFile, fetched: Fetched) -> Parts:
        """Store an export that its sender has agreed to import, and say so.

        Raise `NotConfirmed`, `NotRead`, and `NotWritten` if something was erased meanwhile.
        """
        language, sender_id, here = sent.sender.language, sent.sender.id, fetched.here
        await self.memory.questions.check(here.scope, file.nonce, "import", sender_id)
        found = await self._selected(sent, file, fetched)
        is_list = found.source == LIST
        if found.passages:
            key = "import.list_title" if is_list else "import.title"
            title = unescape(self.sentences.text(language, key, source=found.source))
            taken = {each.title for each in documents(here).values()}
            numbered = (f"{title} ({number})" for number in count(2))
            free = next(each for each in chain([title], numbered) if each not in taken)
            origin = Origin(free, "", file.nbytes, sender_id, sent.sent_at, found.source)
            await Library(self.memory.scopes).put(here, origin, found.passages)
        keys = ["import.list_done" if is_list else "import.done"]
        keys += ["import.example"] * bool(found.passages)
        examples = " · ".join(_examples(found))
        return self.sentences.say(language, *keys, source=found.source, examples=examples)

    async def _selected(self, sent: IncomingMessage, file: SentFile, fetched: Fetched) -> Selection:
        here, content = fetched.here, fetched.content
        # In a thread, because 130,000 lines would block the loop.
        listed = await asyncio.to_thread(_facts_of, file, content, sent.sent_at)
        answer = listed or await parse(READER, content)
        if not answer["talks"]:
            raise NotRead("nothing_to_import")
        stored = documents(here)
        known = {
            key
            for chunk in here.of_kind(Chunk)
            if (document := stored.get(chunk.document)) and document.imported_from
            for key in ((chunk.place, chunk.said_at, chunk.text), (chunk.place, 0, chunk.text))
        }
        fitting = min(room_of(here), _MAX_PASSAGES)
        found = await asyncio.to_thread(select, answer, known, fitting, self.memory.tokens)
        if found.beyond and not found.passages:
            raise NotRead("full")
        return found


def _facts_of(file: SentFile, content: bytes, at: float) -> dict[str, Any] | None:
    """Return the facts of a list, None for an export; raise `NotRead`."""
    # An export may have any name: it is a zip or JSON.
    head = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    is_export = head.startswith((b"PK\x03\x04", b"[", b"{"))
    listed = file.pasted
    if not listed and file.name.lower().endswith(_LIST_SUFFIXES):
        listed = list_in(content, is_asked=bool(file.nonce or file.read_as) and not is_export)
    if listed:
        return read_list(listed, at)
    if is_export:
        return None
    raise NotRead("type")


def _examples(found: Selection) -> list[str]:
    """Return the beginnings of three different passages, newest first, as far as one sees them."""
    lines = (seen_by_people(each.text.partition("\n")[0]) for each in reversed(found.passages))
    said = (" ".join(line.split()) for line in lines)
    examples = dict.fromkeys(text[:_MAX_EXAMPLE_CHARS] for text in said if text)
    return list(islice(examples, _EXAMPLES))
