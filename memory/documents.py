"""Documents of a scope: cut into passages, stored, listed and removed.

It knows no file format and no Telegram. A passage holds whole sentences as far as they fit, and is
found and cited by itself. Passages do not overlap: the index lets words of neighboring passages
count too, so text at an edge is found all the same. Features of the bot fetch and read files.
"""

import hashlib
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from typing import Self

import orjson

from memory.queue.turn_store import LEARN_LATE_S
from memory.scopes.changes import Revision, Write
from memory.scopes.entries import Record
from memory.scopes.fields import Field, name_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Erased, Trust
from memory.store.keys import Scope
from memory.text.sentences import cut_before, sentences
from memory.text.tokens import TokenCounter

PASSAGE_TOKENS = 220  # one or two paragraphs: about one thing, and a prompt has room for several

_CHARS_PER_TOKEN = 16  # the search for a cut reads at most this many characters per token

_UNSEEN = re.compile(r"[^\S\n\t ]|[\x00-\x08\x0e-\x1f\x7f\u00ad\ufeff\ufffe\uffff]")
_BLANKS = re.compile(r"[ \t]{2,}")
_EMPTY_LINES = re.compile(r"\n[ \t]*(?:\n[ \t]*)+")


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a document: a page, or the text below a heading."""

    text: str
    place: str = ""  # names it for people ("page 3")
    said_at: float = 0  # when it was said (Unix seconds), 0 for what is no talk


def passages(
    document: Iterable[Section],
    counter: TokenCounter,
    max_tokens: int = PASSAGE_TOKENS,
    max_count: int | None = None,
) -> list[Section]:
    """Return the passages of a document in order, none empty, each of at most `max_tokens`.

    A passage never spans two sections. What comes after the first `max_count` is not cut.
    """
    found = (
        replace(section, text=passage)
        for section in document
        for passage in filter(None, _packed(_tidy(section.text), counter, max_tokens))
    )
    return [*islice(found, max_count)]


def _tidy(text: str) -> str:
    """Return the text without control characters, repeated blanks and repeated empty lines."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    text = _BLANKS.sub(" ", _UNSEEN.sub(lambda sign: " " if sign[0].isspace() else "", text))
    text = text.encode("utf-8", "replace").decode()  # half an emoji cannot be stored or sent
    return _EMPTY_LINES.sub("\n\n", text)


def _packed(text: str, counter: TokenCounter, max_tokens: int) -> Iterator[str]:
    passage, at_most = "", 0
    for piece in _pieces(text, counter, max_tokens):
        longer = passage + piece
        # A token has at least one byte. Counting each time would take minutes for very short lines.
        at_most += len(piece.encode())
        if at_most > max_tokens:
            at_most = counter.count(longer.strip())
        if passage and at_most > max_tokens:
            yield passage.strip()
            longer, at_most = piece, len(piece.encode())
        passage = longer
    yield passage.strip()


def _pieces(text: str, counter: TokenCounter, max_tokens: int) -> Iterator[str]:
    """Yield sentences; one that is too long for a passage is yielded in parts."""
    for sentence in sentences(text):
        rest = sentence
        max_chars = max_tokens * _CHARS_PER_TOKEN
        while len(rest) > max_chars or counter.count(rest.strip()) > max_tokens:
            at = _longest_part(rest, counter, max_tokens)
            yield rest[:at]
            rest = rest[at:]
        yield rest


def _longest_part(text: str, counter: TokenCounter, max_tokens: int) -> int:
    """Return where to cut off the longest first part that fits (by doubling, then bisection)."""
    # A character has at most four bytes, and a token at least one: so many characters always fit.
    fits, too_long = max(1, max_tokens // 4), min(len(text), max_tokens * _CHARS_PER_TOKEN) + 1
    while too_long - fits > 1:
        middle = min(2 * fits, (fits + too_long) // 2)
        if counter.count(text[:middle].strip()) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return cut_before(text, fits)


MAX_PASSAGES = 4_000  # of all documents of a scope: some 8 MB of Redis
_KEY_CHARS = 16


@dataclass(frozen=True, slots=True)
class Document(Field):
    """A document as the list shows it; its passages are records."""

    PREFIX = "document"
    KEY = "of_name"
    of_name: str  # the short key of its name
    title: str
    digest: str  # of its content, so that the same content is not embedded twice
    passages: int
    added_at: float  # Unix seconds, in its passages too: those of older content have another value
    link: str = ""
    nbytes: int = 0
    sender_id: int = 0  # 0 for the operator
    imported_from: str = ""  # the assistant whose talks it holds
    sent_at: float = 0  # 0 in older documents; it may be read for minutes before it is added

    def without(self, erased: Erased) -> Self | None:
        """Erase it if its sender is erased, unless they sent it later."""
        sent_at = self.sent_at or self.added_at
        return None if erased.takes_from(self.sender_id, sent_at) else self

    @property
    def stored(self) -> str:
        """All attributes as JSON, because a title may have any character."""
        described = asdict(self)
        del described["of_name"]
        return orjson.dumps(described).decode()

    @classmethod
    def read(cls, key: str, stored: str) -> Self:
        """Read a stored value."""
        known = {each.name for each in fields(cls)}  # another version may have added some
        described = orjson.loads(stored)
        return cls(key, **{name: value for name, value in described.items() if name in known})


@dataclass(frozen=True, slots=True)
class Chunk(Record):
    """A passage of a document. Times are Unix seconds."""

    KIND = "chunk"
    id: int
    document: str  # names it within its scope: same name, same document
    number: int  # counts the document's chunks from 0
    text: str
    title: str  # shows people the source, as `link` does
    link: str = ""
    place: str = ""  # the position in the document: "page 3"
    added_at: float = 0
    trust: Trust = Trust.UNTRUSTED
    said_at: float = 0  # when an imported talk had this passage, 0 for all other documents

    @property
    def embedded_text(self) -> str:
        """The title of the document or of the imported talk, and the text."""
        return f"{self.place if self.said_at else self.title}: {self.text}"

    @property
    def group(self) -> int:
        """The passages of one document are neighbors."""
        return hash(self.document)

    def without(self, erased: Erased) -> Self | None:
        """Erase it with its document."""
        return None if name_of(Document, self.document) in erased.fields else self


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a document comes from."""

    name: str  # identifies it in its scope
    link: str = ""
    nbytes: int = 0  # size of the file
    sender_id: int = 0  # the person who sent it, 0 for the operator
    sent_at: float = 0
    imported_from: str = ""  # the assistant whose talks these are
    digest: str = ""  # of the file's bytes, if a model reads it; "": that of the passages counts


@dataclass(frozen=True, slots=True)
class PutResult:
    """What a put did. `replaced`: number of erased passages of older content."""

    document: Document
    is_new: bool
    replaced: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Library:
    """Puts, lists and removes the documents of scopes.

    The name identifies a document within its scope. A document is one field of the scope, and one
    `Chunk` entry for each passage. Both carry the time of adding, so passages of older content can
    be told apart. New passages are written first, then old ones are erased. If the process dies in
    between, the next put erases them. Documents of a namespace do not expire.
    """

    scopes: Scopes

    async def put(
        self, scope_memory: ScopeMemory, origin: Origin, passages: Sequence[Section]
    ) -> PutResult:
        """Store a document; the same content again changes nothing.

        Raise `NotWritten` if something was erased in the scope since `scope_memory` was read. If
        passages are replaced, the version of the scope grows, so an open turn starts again.
        """
        key = key_of(origin.name)
        digest = origin.digest or _digest(origin, passages)
        document = documents(scope_memory).get(key)
        is_new = document is None or document.digest != digest
        if document is None or is_new:
            about = asdict(replace(origin, digest=digest))
            title, count = about.pop("name"), len(passages)
            document = Document(key, title, passages=count, added_at=time.time(), **about)
            # Schedule embedding before writing; a schedule without new text does no harm.
            due, tag = time.time() + LEARN_LATE_S, scope_memory.scope.tag
            store = self.scopes.store
            await store.client.call("ZADD", store.keys.learning, due, tag)
            await self.scopes.write(scope_memory, Write(_chunks(document, passages), [document]))
            scope_memory = await self.scopes.read(scope_memory.scope)
        # After a crash between writing and erasing, the next put erases the old passages.
        old = [
            chunk.id
            for chunk in scope_memory.of_kind(Chunk)
            if chunk.document == key and chunk.added_at != document.added_at
        ]
        if old:
            await self.scopes.update(scope_memory.scope, lambda _: Revision(records=old))
        return PutResult(document, is_new, len(old))

    async def remove(self, scope: Scope, key: str) -> Document | None:
        """Erase a document and return it; None if the scope has no document of this key."""
        document: Document | None = None

        def decide(here: ScopeMemory) -> Revision | None:
            nonlocal document
            document = documents(here).get(key)
            records = [chunk.id for chunk in here.of_kind(Chunk) if chunk.document == key]
            is_there = document is not None or records
            return Revision(records=records, removed=[name_of(Document, key)]) if is_there else None

        await self.scopes.update(scope, decide)
        return document

    async def listed(self, scope: Scope) -> list[Document]:
        """Return the documents of a scope, newest first."""
        found = documents(await self.scopes.read(scope)).values()
        return sorted(found, key=lambda document: -document.added_at)


def documents(scope_memory: ScopeMemory) -> dict[str, Document]:
    """Return the documents of a scope by their keys."""
    return {document.key: document for document in scope_memory.all(Document)}


def room_of(scope_memory: ScopeMemory, but: str = "") -> int:
    """Return how many passages a scope may still get, without those of the document `but`."""
    others = (each for each in documents(scope_memory).values() if each.title != but)
    return MAX_PASSAGES - sum(each.passages for each in others)


def key_of(name: str) -> str:
    """Return the short key of a document's name, for field names and buttons."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:_KEY_CHARS]


def _digest(origin: Origin, passages: Sequence[Section]) -> str:
    content = [origin.name, origin.link, *((each.place, each.text) for each in passages)]
    return hashlib.sha256(orjson.dumps(content)).hexdigest()[:_KEY_CHARS]


def _chunks(document: Document, passages: Sequence[Section]) -> list[Chunk]:
    return [
        Chunk(
            id=0,
            document=document.key,
            number=number,
            text=passage.text,
            title=document.title,
            link=document.link,
            place=passage.place,
            added_at=document.added_at,
            said_at=passage.said_at,
        )
        for number, passage in enumerate(passages)
    ]
