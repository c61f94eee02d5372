"""The documents of a scope: a field for the list, and one record for each passage."""

from dataclasses import asdict, dataclass, fields
from typing import Self

import orjson

from memory.scopes.entries import Record
from memory.scopes.fields import Field
from memory.scopes.sources import Erased, Trust


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

    def without(self, erased: Erased) -> Self | None:
        """Erase it if its sender is erased, unless they sent it later."""
        return None if erased.takes_from(self.sender_id, self.added_at) else self

    def _stored(self) -> str:
        described = asdict(self)
        del described["of_name"]
        return orjson.dumps(described).decode()

    @classmethod
    def _read(cls, key: str, stored: str) -> Self:
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
        return None if self.document in erased.documents else self
