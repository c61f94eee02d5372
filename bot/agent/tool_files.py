"""Checks the files of tools before they go out with an answer: number, size, name and content.

A tool may pass on what strangers made, so neither a name nor a type is believed: the content
decides how a file is sent and how its name ends. The header of a picture is read in a process of
its own.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from weakref import WeakValueDictionary

from bot.parsing.answers import NotRead
from bot.parsing.pictures import ANY_SIZE, read_picture
from bot.parsing.processes import memory_mb
from memory.behaviors.context import AgentContext
from memory.behaviors.tool_output import FileKind, OutgoingFile, is_opus
from memory.text.untrusted_text import one_line, seen_by_people

MAX_FILES = 3
MAX_FILE_BYTES = 5 * 2**20
MAX_ANSWER_BYTES = 8 * 2**20
_SHARE_OF_MEMORY = 16
"""Files of all answers that are not sent yet may take this share; they are copied to be sent."""
_ALL: "WeakValueDictionary[int, OutgoingFile]" = WeakValueDictionary()
"""The files of all answers of this process, as long as anything refers to them."""
_MAX_LINES = 10
"""Of one call at most this many files are sent, and the model reads a line about each."""
_MAX_NAME_CHARS = 60
_MAX_SIDES = 10_000
_MAX_RATIO = 20
"""Telegram shows a picture up to this sum of width and height, and up to this ratio of them."""
_PICTURES = {"image/jpeg": "jpg", "image/png": "png", "image/webp": "webp"}
_BEGINNINGS: tuple[tuple[bytes, tuple[str, ...]], ...] = (
    (b"%PDF-", ("pdf",)),
    (b"PK\x03\x04", ("zip", "docx", "xlsx", "pptx", "epub", "odt", "ods", "odp")),
    (b"GIF8", ("gif",)),
    (b"ID3", ("mp3",)),
    (b"\xff\xfb", ("mp3",)),
    (b"fLaC", ("flac",)),
    (b"OggS", ("ogg",)),
)
"""How files begin, and the endings that they may have; the first one is given to any other."""
_TEXTS = frozenset(["txt", "md", "csv", "tsv", "json", "xml", "yaml", "yml", "ics", "vcf", "log"])
_HIDING = re.compile('[/\\\\:*?"<>|\\[\\]]')  # characters that mean something in a path


class NotSendable(Exception):
    """Raised for a file that is not sent; the text says why to the model."""


async def attach(files: Sequence[OutgoingFile], context: AgentContext) -> list[str]:
    """Keep what is sent with the answer; return a line for the model about each file."""
    lines = []
    for file in files[:_MAX_LINES]:
        name = _cleaned(file.name)
        try:
            checked = await _checked(replace(file, name=name), context.files)
        except NotSendable as refusal:
            lines.append(f"[{name} is not sent: {refusal}]")
        else:
            context.files.append(checked)
            lines.append(f"[{checked.name} is sent to the person with your answer]")
    return lines


async def _checked(file: OutgoingFile, earlier: list[OutgoingFile]) -> OutgoingFile:
    _check_room(file, earlier)
    _ALL[id(file)] = file
    if file.file_id:
        return replace(file, content=b"", kind="document" if file.kind == "text" else file.kind)
    if not file.content:
        raise NotSendable("it is empty")
    stem, _, ending = file.name.rpartition(".")
    kind, real_ending = await _kind_and_ending(file.content, ending.lower())
    name = f"{stem or ending}.{real_ending}" if real_ending else f"{file.name}.bin"
    _check_room(file, earlier)  # another tool may have attached a file meanwhile
    checked = replace(file, name=name, kind=kind)
    _ALL[id(checked)] = checked
    return checked


def _check_room(file: OutgoingFile, earlier: list[OutgoingFile]) -> None:
    if len(earlier) >= MAX_FILES:
        raise NotSendable(f"an answer has at most {MAX_FILES} files")
    if file.nbytes > MAX_FILE_BYTES:
        raise NotSendable(f"it is larger than {MAX_FILE_BYTES >> 20} MB")
    if file.nbytes + sum(each.nbytes for each in earlier) > MAX_ANSWER_BYTES:
        raise NotSendable(f"the files of an answer have at most {MAX_ANSWER_BYTES >> 20} MB")
    max_bytes = memory_mb() * 2**20 // _SHARE_OF_MEMORY
    others = (each.nbytes for each in _ALL.values() if each is not file)
    if file.nbytes + sum(others) > max_bytes:
        raise NotSendable("other people get large files now; the person can ask again in a minute")


async def _kind_and_ending(content: bytes, ending: str) -> tuple[FileKind, str]:
    """Return how a file is sent and how its name ends, "" if nobody knows what it is."""
    if picture := await _picture(content):
        return picture
    if is_opus(content):
        return "voice", "ogg"
    for beginning, endings in _BEGINNINGS:
        if content.startswith(beginning):
            return "document", ending if ending in endings else endings[0]
    if content[:4] + content[8:12] == b"RIFFWAVE":
        return "document", "wav"
    if content[4:8] == b"ftyp":
        return "document", ending if ending in ("mp4", "m4a") else "mp4"
    try:
        is_text = ending in _TEXTS and "\0" not in content.decode()
    except UnicodeDecodeError:
        is_text = False
    return "document", ending if is_text else ""


async def _picture(content: bytes) -> tuple[FileKind, str] | None:
    """Return how a picture is sent, None for what is none; raise `NotSendable` for a bomb."""
    try:
        picture = await read_picture(content, ANY_SIZE, ANY_SIZE)
    except NotRead as why:
        if why.reason == "damaged":
            return None
        raise NotSendable("it has too many pixels") from None
    if picture.mime_type not in _PICTURES:
        return None
    short, long = sorted((picture.width, picture.height))
    is_shown = short + long <= _MAX_SIDES and long <= _MAX_RATIO * short
    return "photo" if is_shown else "document", _PICTURES[picture.mime_type]


def _cleaned(name: str) -> str:
    seen = _HIDING.sub("_", seen_by_people(one_line(name))).strip(". ")
    stem, dot, ending = seen.rpartition(".")
    kept = _MAX_NAME_CHARS - len(ending) - 1
    short = f"{stem[:kept]}{dot}{ending}" if dot and kept > 0 else seen[:_MAX_NAME_CHARS]
    return short.strip(". ") or "file"
