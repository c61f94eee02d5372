"""Reads the export of an assistant, in a process of its own: `talk_reader.py MB SECONDS`.

It reads the file from standard input and writes one JSON object: `{"source": "ChatGPT", "talks":
[...], "beyond": n}` or `{"refused": "<reason>"}`. A talk is `{"title", "at", "messages": [[role,
text, at], ...]}`, "at" in Unix seconds, 0 if unknown. A talk with the role "fact" holds facts.

The README says which exports are known. Content decides, never a name. Nothing is unpacked to a
disk; reading ends at a bound, and only one talk is in memory as JSON.
"""

import codecs
import html
import io
import json
import re
import time
import zipfile
from collections.abc import Iterator
from datetime import datetime
from typing import IO, Any

from bot.parsing.answers import NotRead, answer, members_of

_MAX_UNPACKED = 64 * 2**20
_MAX_OWN = 16 * 2**20  # characters of our own export, which is parsed as a whole
_MAX_TALKS = 20_000
_MAX_MESSAGES = 2_000  # messages of one talk
_MAX_WORDS = 4_000  # characters kept of one message of the person
_MAX_ANSWER = 600  # characters kept of one answer: enough to know what it was about
_MAX_CHARS = 6_000_000  # of the whole answer; the newest talks win
_MESSAGE_CHARS = 50  # what each message costs beside its text: it takes memory, too
_MAX_ALL_MESSAGES = 60_000  # of the whole answer
_CHUNK = 2**20
_SIGNATURE = "utf-8-sig"
_DAY_S = 24 * 3600
_WANTED = re.compile(
    r"(?:^|/)(?:conversations(?:-\d{1,4})?|memories|memories/[^/]{1,80}|[^/]{0,40}Gemini[^/]{0,40}/[^/]{1,80})"
    r"\.json\Z"
)
_ASKED = re.compile(r"\A(?:Prompted(?: with:)?|Asked(?: Gemini:| Bard:)?|Said|Answered|Branched) ")
"""How the title of a question to Gemini begins, in an account in English."""
_TAG = re.compile(r"<[^<>]{0,500}>")
_MAX_HTML = 4 * _MAX_ANSWER
_HEADING = re.compile(r"#{1,6}\s.*|\*\*[^*]*\*\*:?|-{3,}")
_BLANK = re.compile(r"[\s,]*")
_PAUSE_S = 6 * 3600  # a longer pause in our own export, or in what Gemini was asked, ends a talk

Messages = list[tuple[str, str, float]]


def _read(content: bytes) -> dict[str, object]:
    is_zip = content.startswith(b"PK\x03\x04")
    files = _unpacked(content) if is_zip else [_Text(io.BytesIO(content), _MAX_UNPACKED)]
    source = ""
    talks: list[dict[str, Any]] = []
    count = messages = 0
    for file in files:
        for found, talk in _talks(file):
            source = source or found
            if not talk:
                continue
            count += 1
            if count > _MAX_TALKS:
                raise NotRead("too_long")
            talks.append(talk)
            messages += len(talk["messages"])
            if messages > 2 * _MAX_ALL_MESSAGES:
                talks = _newest(talks)
                messages = sum(len(kept["messages"]) for kept in talks)
    if not source:
        raise NotRead("type")
    talks = _newest(talks)
    return {"source": source, "talks": talks, "beyond": count - len(talks)}


def _newest(talks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    talks.sort(key=lambda talk: float(-talk["at"]))
    chars = messages = 0
    for number, talk in enumerate(talks):
        messages += len(talk["messages"])
        chars += sum(len(text) + _MESSAGE_CHARS for _, text, _ in talk["messages"])
        if chars > _MAX_CHARS or messages > _MAX_ALL_MESSAGES:
            return talks[:number]
    return talks


class _Text:
    """The text of a file, read piece by piece; raises `NotRead` beyond `left` bytes."""

    def __init__(self, file: IO[bytes], left: int) -> None:
        self.left = left
        self.text = ""
        self.is_whole = False
        self._file = file
        self._decoder = codecs.getincrementaldecoder(_SIGNATURE)()

    def read_on(self, start: int) -> None:
        """Drop the text before `start`, and read at least as much as is left of it."""
        self.text = self.text[start:]
        piece = self._file.read(max(_CHUNK, len(self.text)))
        self.left -= len(piece)
        if self.left < 0:
            raise NotRead("too_long")
        self.is_whole = not piece
        self.text += self._decoder.decode(piece, final=self.is_whole)


def _unpacked(content: bytes) -> Iterator[_Text]:
    """Yield the files of talks in a zip, whatever else is in it; raise `NotRead`."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        named = members_of(archive, _WANTED.search)
        if not named:
            raise NotRead("type")
        left = _MAX_UNPACKED
        for member in named:
            with archive.open(member) as packed:
                text = _Text(packed, left)
                yield text
            left = text.left


def _talks(file: _Text) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield source and talk, None for one that cannot be read; raise `NotRead`."""
    file.read_on(0)
    if file.text.lstrip()[:1] == "{":
        yield from _own(json.loads(_whole(file)))
        return
    activity: Messages = []
    for element in _elements(file):
        match element:
            case {"header": str(header), "title": str(title)} if "Gemini" in header:
                asked = _gemini(title, element)
                is_far = asked and activity and activity[-1][2] - asked[-1][2] > _PAUSE_S
                if is_far or len(activity) >= _MAX_MESSAGES:
                    yield "Gemini", _talk("", 0, activity[::-1])
                    activity = []
                activity += asked
            case {"mapping": dict()} as talk:
                yield "ChatGPT", _chatgpt(talk)
            case {"chat_messages": list()} as talk:
                yield "Claude", _claude(talk)
            case {"conversations_memory": _} as memories:
                yield from _claude_memories(memories)
            case _:
                yield "", None
    if activity:
        yield "Gemini", _talk("", 0, activity[::-1])


def _whole(file: _Text) -> str:
    while not file.is_whole:
        if len(file.text) > _MAX_OWN:
            raise NotRead("too_long")
        file.read_on(0)
    return file.text


def _gemini(title: str, item: dict[str, Any]) -> Messages:
    """Return answer and question of an item; nothing for what is no question, such as feedback.

    Items come newest first. In an account in another language a title keeps its verb.
    """
    question, at = _ASKED.sub("", title, count=1), _moment(item.get("time"))
    match item.get("safeHtmlItem"):
        case [{"html": str(found)}, *_]:
            words = html.unescape(_TAG.sub(" ", found[:_MAX_HTML]))
            answered = _message("assistant", " ".join(words.split()), at)
            return answered + _message("user", question, at)
    return _message("user", question, at) if question != title else []


def _elements(file: _Text) -> Iterator[Any]:
    """Yield the elements of a JSON array, one at a time, so that only one is in memory."""
    decoder = json.JSONDecoder()
    position = file.text.find("[") + 1
    if file.text[:position].strip() != "[":
        raise NotRead("type")
    while True:
        if at := _BLANK.match(file.text, position):
            position = at.end()
        if file.text[position : position + 1] == "]":
            return
        try:
            element, end = decoder.raw_decode(file.text, position)
            is_cut = end == len(file.text)  # a number may go on
        except ValueError:
            is_cut = True
            if file.is_whole:
                raise
        if is_cut and not file.is_whole:
            file.read_on(position)
            position = 0
            continue
        yield element
        position = end


def _chatgpt(talk: dict[str, Any]) -> dict[str, Any] | None:
    """Follow the branch that the person saw last, from its end to its beginning."""
    mapping, name = talk["mapping"], talk.get("current_node")
    nodes: list[dict[str, Any]] = []
    seen: set[str] = set()
    while isinstance(name, str) and name not in seen and isinstance(mapping.get(name), dict):
        seen.add(name)
        nodes.append(mapping[name])
        name = mapping[name].get("parent")
    ordered = nodes[::-1] or [each for each in mapping.values() if isinstance(each, dict)]
    messages: Messages = []
    for node in ordered[-_MAX_MESSAGES:]:
        match node.get("message"):
            case {
                "author": {"role": "user" | "assistant" as role},
                "content": {"parts": list(parts)},
                **rest,
            }:
                words = [each for each in parts if isinstance(each, str)]
                messages += _message(role, "\n".join(words), _moment(rest.get("create_time")))
    return _talk(talk.get("title"), _moment(talk.get("create_time")), messages)


def _claude(talk: dict[str, Any]) -> dict[str, Any] | None:
    messages: Messages = []
    for message in talk["chat_messages"][-_MAX_MESSAGES:]:
        match message:
            case {"sender": "human" | "assistant" as sender}:
                text, content = message.get("text"), message.get("content")
                if not (isinstance(text, str) and text.strip()) and isinstance(content, list):
                    blocks = [each.get("text") for each in content if isinstance(each, dict)]
                    text = "\n".join(each for each in blocks if isinstance(each, str))
                role = "user" if sender == "human" else sender
                messages += _message(role, text, _moment(message.get("created_at")))
    return _talk(talk.get("name"), _moment(talk.get("created_at")), messages)


def _claude_memories(memories: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Yield a fact for each line that is no heading; Claude writes no dates to them."""
    projects = memories.get("project_memories")
    told = [memories["conversations_memory"]]
    told += projects.values() if isinstance(projects, dict) else []
    for text in told:
        for line in text.splitlines() if isinstance(text, str) else ():
            fact = line.strip().removeprefix("- ")
            if not _HEADING.fullmatch(fact):
                yield "Claude", _talk("", 0, _message("fact", fact, 0))


def _own(export: Any) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """Read our own export: its messages, cut at long pauses, and the facts that still hold."""
    match export:
        case {"conversations_memory": _}:
            yield from _claude_memories(export)
            return
        case {"exported_at": str(), "messages": list(sent), "facts": list(facts)}:
            pass
        case _:
            raise NotRead("type")
    messages: Messages = []
    for each in sent:
        match each:
            case {"role": "user" | "assistant" as role, "text": str(text), "sent_at": at}:
                message = _message(role, text, _moment(at))
                if messages and message and message[0][2] - messages[-1][2] > _PAUSE_S:
                    yield "Ricordo", _talk("", 0, messages)
                    messages = []
                messages += message
    yield "Ricordo", _talk("", 0, messages)
    for fact in facts:
        match fact:
            case {"text": str(text), "said_at": at, "ended_at": None}:
                yield "Ricordo", _talk("", 0, _message("fact", text, _moment(at)))


def _message(role: str, text: object, at: float) -> Messages:
    words = _well_formed(text).strip() if isinstance(text, str) else ""
    bound = _MAX_ANSWER if role == "assistant" else _MAX_WORDS
    shown = words if len(words) <= bound else f"{words[:bound].rstrip()}…"
    return [(role, shown, at)] if shown else []


def _talk(title: object, at: float, messages: Messages) -> dict[str, Any] | None:
    if not messages:
        return None
    name = " ".join(_well_formed(title).split())[:80] if isinstance(title, str) else ""
    began = at or next((each[2] for each in messages if each[2]), 0)
    dated = [(role, text, when or began) for role, text, when in messages]
    return {"title": name, "at": began, "messages": dated}


def _well_formed(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _moment(at: object) -> float:
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at).timestamp()
        except (ValueError, OverflowError, OSError):
            return 0
    latest = time.time() + _DAY_S
    return float(at) if isinstance(at, int | float) and 0 < at < latest else 0


if __name__ == "__main__":
    codecs.lookup(_SIGNATURE)  # afterwards nothing can be opened
    answer(_read)
