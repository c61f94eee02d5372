"""What a tool may return beside text: files for the person, delivered with the answer."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, Self

FileKind = Literal["text", "document", "photo", "voice"]


@dataclass(frozen=True, slots=True, weakref_slot=True)
class OutgoingFile:
    """A file to send: its `content`, or the `file_id` of one that Telegram has.

    The content of "text" is UTF-8, sent as a document, or as messages where files are forbidden.
    """

    name: str
    content: bytes = field(default=b"", repr=False)
    file_id: str = ""
    # How it is sent. The content of a tool's file decides it; with a `file_id`, what Telegram has.
    kind: FileKind = "text"

    @property
    def nbytes(self) -> int:
        """The size of the content, 0 for one that Telegram has."""
        return len(self.content)


class ToolOutput(str):
    """The text that the model reads, with files that are sent to the person with the answer.

    At most 3 files of 5 MB each are sent with an answer, 8 MB in all. The model is told in one line
    which are sent and which are not.
    """

    __slots__ = ("files",)
    files: tuple[OutgoingFile, ...]

    def __new__(cls, text: str, files: Iterable[OutgoingFile]) -> Self:
        """Return the text with files."""
        output = super().__new__(cls, text)
        output.files = tuple(files)
        return output


def is_opus(content: bytes) -> bool:
    """Return whether a sound is OGG with Opus, which Telegram shows as a voice message."""
    return content.startswith(b"OggS") and b"OpusHead" in content[:64]
