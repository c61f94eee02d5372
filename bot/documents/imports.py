"""Talks that a person brings along from another assistant: counted, asked about, and stored.

They become one document of the conversation, with a dated passage for each question and its
answer. So they are found, cited, listed, exported and deleted like any document, and untrusted.
Nothing is stored before the button. Then the file is fetched and read once more, in a turn; a
passage that an earlier import has stored is not stored again, so a repeated turn changes nothing.
"""

import asyncio
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import orjson

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.documents.formats import REASONS, DocumentRefused
from bot.documents.isolated import ParserFailed, parse
from bot.reply.parts import Button
from bot.telegram.updates import IncomingMessage, SentFile
from memory.documents.chunking import Section, passages
from memory.documents.library import Library, Origin, documents
from memory.erasure.confirmations import Confirmations
from memory.scopes.scope_memory import ScopeMemory
from memory.text.tokens import TokenCounter

_READER = Path(__file__).with_name("talk_reader.py")
_MEMORY_MB, _CPU_S, _TIMEOUT_S = 448, 10, 25.0
MAX_PASSAGES_HERE = 4_000
"""Of all documents of a conversation: some 8 MB of Redis."""
_MAX_PASSAGES = 3_000
"""Of one import: some 6 MB of Redis, written at once."""
_TYPES = frozenset({"application/json", "application/zip", "application/x-zip-compressed"})
_SUFFIXES = (".json", ".zip")


def may_be_export(file: SentFile) -> bool:
    """Say whether a file is worth fetching that is no document; its content decides later."""
    is_named_so = file.name.lower().endswith(_SUFFIXES)
    return is_named_so or file.mime_type.partition(";")[0].strip().lower() in _TYPES


def looks_like_export(content: bytes) -> bool:
    """Say whether a content could be an export, whatever its name: a zip, or JSON."""
    head = content[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return head.startswith((b"PK\x03\x04", b"[", b"{"))


@dataclass(frozen=True, slots=True)
class Selection:
    """What of an export is stored: passages in the order of time, and counts for the preview.

    `known` counts talks that are stored already, `beyond` the oldest ones, for which there is no
    room. `first_at` and `last_at` are 0 if no talk has a date.
    """

    source: str
    passages: list[Section]
    talks: int = 0
    messages: int = 0
    facts: int = 0
    known: int = 0
    beyond: int = 0
    first_at: float = 0
    last_at: float = 0


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
        found = await self._selected(here, content)
        language = sent.sender.language
        if not found.passages:
            return Answer(self._sentences.say(language, "import.known", source=found.source))
        about = orjson.dumps([file.file_id, file.name, file.mime_type, file.nbytes]).decode()
        nonce = await self._confirmations.ask(here.scope, "import", sent.sender.id, about)
        row = (
            Button(self._sentences.text(language, "buttons.import"), f"import:{nonce}"),
            Button(self._sentences.text(language, "buttons.dont_import"), f"dont_import:{nonce}"),
        )
        *before, last = self._sentences.say(
            language, *_keys(found), **self._counts(language, found)
        )
        return Answer((*before, replace(last, buttons=(row,))))

    async def store(
        self, sent: IncomingMessage, file: SentFile, here: ScopeMemory, content: bytes
    ) -> Answer:
        """Store an export that its sender has agreed to import, and say so.

        Raise `NotConfirmed`, `DocumentRefused`, and `NotWritten` if something was erased since
        `here` was read.
        """
        language = sent.sender.language
        nonce, sender_id = file.import_nonce, sent.sender.id
        await self._confirmations.check(here.scope, nonce, "import", sender_id)
        found = await self._selected(here, content)
        if found.passages:
            day = self._sentences.day(language, sent.sent_at)
            title = self._sentences.text(language, "import.title", source=found.source, date=day)
            origin = Origin(
                _free_title(here, title),
                nbytes=file.nbytes,
                sender_id=sender_id,
                imported_from=found.source,
            )
            await self.library.put(here, origin, found.passages)
        return Answer(self._sentences.say(language, "import.done", source=found.source))

    async def _selected(self, here: ScopeMemory, content: bytes) -> Selection:
        try:
            answer = await parse(_READER, (_MEMORY_MB, _CPU_S), content, _TIMEOUT_S)
        except ParserFailed:
            raise DocumentRefused("damaged") from None
        if reason := answer.get("refused"):
            raise DocumentRefused(reason if reason in REASONS else "damaged")
        if not answer["talks"]:
            raise DocumentRefused("nothing_to_import")
        stored = documents(here)
        room = MAX_PASSAGES_HERE - sum(each.passages for each in stored.values())
        known = {
            (chunk.place, chunk.said_at, chunk.text)
            for chunk in here.chunks
            if (document := stored.get(chunk.document)) and document.imported_from
        }
        select = (answer, known, min(room, _MAX_PASSAGES), self._tokens)
        found = await asyncio.to_thread(_select, *select)
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


def _keys(found: Selection) -> list[str]:
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


def _select(
    answer: dict[str, Any],
    known: set[tuple[str, float, str]],
    room: int,
    tokens: TokenCounter,
) -> Selection:
    """Take the newest talks that fit; a talk is stored with all its new passages or not at all."""
    found = Selection(answer["source"], [], beyond=answer["beyond"])
    for number, talk in enumerate(answer["talks"]):
        cut = passages(_sections(talk, found.source), tokens)
        new = [each for each in cut if (each.place, each.said_at, each.text) not in known]
        if len(found.passages) + len(new) > room:
            return replace(found, beyond=found.beyond + len(answer["talks"]) - number)
        if not new:
            found = replace(found, known=found.known + 1)
            continue
        times = [at for *_, at in talk["messages"] if at]
        first = min([*times, *([found.first_at] if found.first_at else [])], default=0)
        is_fact = talk["messages"][0][0] == "fact"
        found = replace(
            found,
            passages=new + found.passages,
            talks=found.talks + (not is_fact),
            facts=found.facts + is_fact,
            messages=found.messages + (0 if is_fact else len(talk["messages"])),
            first_at=first,
            last_at=max([*times, found.last_at]),
        )
    return found


def _sections(talk: dict[str, Any], source: str) -> list[Section]:
    """Return a section for each question with its answer."""
    sections: list[Section] = []
    for role, text, at in talk["messages"]:
        if role == "assistant" and sections:
            longer = f"{sections[-1].text}\n{source}: {text}"
            sections[-1] = replace(sections[-1], text=longer)
        else:
            shown = f"{source}: {text}" if role == "assistant" else text
            sections.append(Section(shown, talk["title"], at))
    return sections
