"""What the parsers of files share: their answer, the sections they find, and the bounds of a zip.

It imports nothing of the bot but the limits of a parser's process.
"""

import codecs
import io
import json
import sys
import zipfile
from collections.abc import Callable, Iterable

from bot.parsing.confined import confine

_MAX_MEMBERS = 5_000
_MAX_RATIO = 100  # unpacked bytes for each byte of the file; XML of real documents reaches about 30
_RATIO_FROM = 2**20  # below this many unpacked bytes the ratio says nothing
_MB_FOR_UNPACKED_MB = 5  # a parsed file takes several times the memory of its XML
_CHUNK = 2**16
_ENCRYPTED = 0x1
_OLE = b"\xd0\xcf\x11\xe0"  # an Office file with a password is not a zip but an OLE container
_OLE_PACKAGE = "EncryptedPackage".encode("utf-16-le")
_DTD_SIGNS = (b"<!DOCTYPE", b"<!ENTITY")
_ENCODINGS = (
    *("ascii", "charmap", "latin-1", "utf-8", "utf-16", "utf-16-be", "utf-16-le"),
    *("cp437", "gbk", "gb2312", "gb18030", "cp932", "cp950"),
    *("big5", "shift_jis", "euc_jp", "euc_kr", "koi8_r", "cp1250", "cp1251", "cp1252", "cp1256"),
    *("cp1253", "cp1254", "cp1255", "cp1257", "cp1258", "cp874", "iso8859_7", "iso8859_9"),
)
"""Those that pypdf looks up by name, of names in a zip, and that pages may declare."""
_MAX_PLACE_CHARS = 80
_MIN_LINE_CHARS = 8
"""A document has at most as many lines as if each had so many characters: lines cost time."""


class NotRead(Exception):
    """Raised when a file is not read; `reason` says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def answer(read: Callable[..., dict[str, object]]) -> None:
    """Read standard input under limits, and write one JSON object to standard output.

    The last two arguments of the process are MB and SECONDS. `read` gets the content and the
    arguments before them. The object is what it returns, or `{"refused": "<reason>"}`.
    """
    *arguments, memory_mb, cpu_s = map(int, sys.argv[1:])
    for name in _ENCODINGS:  # afterwards no file can be opened
        codecs.lookup(name)
    confine(memory_mb, cpu_s)
    found: dict[str, object]
    try:
        found = read(sys.stdin.buffer.read(), *arguments)
    except NotRead as refusal:
        found = {"refused": refusal.reason}
    except MemoryError:
        found = {"refused": "too_long"}
    except Exception:  # noqa: BLE001 - the outer fence around a parser of untrusted files
        found = {"refused": "damaged"}
    written = json.dumps(found, ensure_ascii=False, separators=(",", ":"))
    sys.stdout.buffer.write(written.encode("utf-8", "replace"))


class Sections:
    """Collects the lines of a document, section by section, up to a number of characters."""

    def __init__(self, max_chars: int) -> None:
        self._left = max_chars
        self._lines_left = max_chars // _MIN_LINE_CHARS
        self._found: list[tuple[str, list[str]]] = []

    def begin(self, place: str) -> None:
        """Begin a section; `place` names it for people. Raise `NotRead` if the text is too long."""
        place = " ".join(place.split())[:_MAX_PLACE_CHARS]
        self._spend(place)
        self._found.append((place, []))

    def add(self, line: str) -> None:
        """Add a line to the current section; raise `NotRead` if the text is too long."""
        line = line.strip()
        self._spend(line)
        if not self._found:
            self.begin("")
        self._found[-1][1].append(line)

    def add_row(self, cells: Iterable[str]) -> None:
        """Add a row of a table as one line; a row without text is left out."""
        tidy = [" ".join(cell.split()) for cell in cells]
        while tidy and not tidy[-1]:
            tidy.pop()
        if tidy:
            self.add(" | ".join(tidy))

    def _spend(self, line: str) -> None:
        self._left -= len(line) + 1
        self._lines_left -= 1
        if min(self._left, self._lines_left) < 0:
            raise NotRead("too_long")

    def found(self) -> list[tuple[str, str]]:
        """Return the sections with text, in their order, as pairs of place and text."""
        joined = [(place, "\n".join(lines).strip()) for place, lines in self._found]
        return [(place, text) for place, text in joined if text]


def answer_sections(add: Callable[[bytes, Sections, int], None]) -> None:
    """Run a parser of sections: CHARACTERS, MB and SECONDS are the arguments of the process.

    `add` gets the content, the sections to add to, and the megabytes. The process writes
    `{"sections": [[place, text], ...]}` or `{"refused": "<reason>"}`.
    """

    def read(content: bytes, max_chars: int) -> dict[str, object]:
        sections = Sections(max_chars)
        add(content, sections, int(sys.argv[-2]))
        return {"sections": sections.found()}

    answer(read)


def members_of(
    archive: zipfile.ZipFile, is_wanted: Callable[[str], object] = lambda _: True
) -> list[zipfile.ZipInfo]:
    """Return the files of a zip whose names `is_wanted` accepts; raise `NotRead` for a bad one."""
    members = archive.infolist()
    if len(members) > _MAX_MEMBERS:
        raise NotRead("too_long")
    wanted = [each for each in members if is_wanted(each.filename)]
    for member in wanted:
        if member.flag_bits & _ENCRYPTED:
            raise NotRead("encrypted")
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise NotRead("damaged")
    return wanted


def open_zip(content: bytes, memory_mb: int, *, may_have_dtd: bool = False) -> zipfile.ZipFile:
    """Return a zip that has been unpacked once, to count what is really in it.

    What a zip says about its sizes counts for nothing. Nothing inside it is opened as a zip again.
    Unless `may_have_dtd`, an XML file with a DTD is damaged: office formats forbid it, and only an
    attack has one, to expand entities.
    Raise `NotRead`, and `zipfile.BadZipFile` for a damaged one.
    """
    if content.startswith(_OLE):
        raise NotRead("encrypted" if _OLE_PACKAGE in content else "type")
    archive = zipfile.ZipFile(io.BytesIO(content))
    most = memory_mb * 2**20 // _MB_FOR_UNPACKED_MB
    left = min(most, max(_RATIO_FROM, _MAX_RATIO * len(content)))
    for member in members_of(archive):
        is_xml = member.filename.lower().endswith((".xml", ".rels"))
        before = b""
        with archive.open(member) as packed:
            while chunk := packed.read(_CHUNK):
                left -= len(chunk)
                if left < 0:
                    raise NotRead("too_long")
                if may_have_dtd or not is_xml:
                    continue
                seen = before + chunk.replace(b"\0", b"")  # as in UTF-16
                if any(sign in seen for sign in _DTD_SIGNS):
                    raise NotRead("damaged")
                before = seen[-len(_DTD_SIGNS[0]) :]
    return archive
