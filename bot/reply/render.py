"""The model's Markdown as message parts: text with valid entities, cut to what Telegram accepts.

A code block beyond one message becomes a file, and its name and length stand in its place. A reply
that still takes more than `MAX_PARTS` messages becomes one file, and the chat shows how it begins.

Telegram would repair or drop entities that break its nesting rules (tdlib, MessageEntity.cpp): one
entity contains another whole or not at all. None contains its own type. `pre` and `code` contain
nothing and stand in nothing but a quote. Links contain no link and quotes no quote.

Only web and mail addresses become links, none under another host's name. A link to
`tg://time?unix=<seconds>` becomes a moment that each client shows in its own time zone.
"""

import asyncio
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from urllib.parse import urlsplit

import structlog
from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import convert_with_segments

from bot.reply.parts import Edit, Entity, Part, Parts, edited, text_of, utf16_length
from bot.reply.source import bounded, clean, protect, restore
from bot.reply.split import MAX_CAPTION_UTF16, MAX_UTF16, code_blocks, split, with_line
from memory.behaviors.tool_output import OutgoingFile

log = structlog.get_logger(__name__)

SHORT_CHARS = 2000
"""A text up to this length is rendered in the event loop, which takes at most some 20 ms."""

_MAX_RENDER_S = 5.0
_MAX_TABLE_CHARS = 64
"""Length of the longest line of a table that keeps its padding; a phone shows some forty."""

_DASHES = re.compile("-+")
_SPACES = re.compile(" +")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


async def rendered(source: str) -> Parts:
    """Return the parts that show `source` as `render` does; a long text is rendered in a thread.

    If that takes too long, the text is shown without formatting.
    """
    if len(source) <= SHORT_CHARS:
        return render(source)
    try:
        async with asyncio.timeout(_MAX_RENDER_S):
            return await asyncio.to_thread(render, source)
    except TimeoutError:
        log.warning("rendering timed out: reply shown without formatting", chars=len(source))
        return plain(source)


def render(markdown: str) -> Parts:
    """Return the parts that show `markdown`; () if nothing in it is visible."""
    return split(*parsed(markdown)) or plain(markdown)


def plain(text: str) -> Parts:
    """Return parts without formatting, for a text whose entities Telegram refuses."""
    return split(clean(text))


def parsed(markdown: str) -> tuple[str, tuple[Entity, ...]]:
    """Return the text that shows `markdown`, and its entities."""
    source = clean(markdown)
    shown, found, segments = convert_with_segments(
        protect(bounded(source)), latex_escape=False, config=_CONFIG
    )
    text, entities = restore(shown), [_entity(each) for each in found]
    # The parser pads each cell of a table to the widest of its column, and a phone would wrap the
    # padding into blank lines. A table is a `pre` that is no code block.
    fences = {segment.utf16_start for segment in segments}
    units, edits = text.encode("utf-16-le"), []
    for table in entities:
        if table.type == "pre" and table.offset not in fences:
            rows = text_of(units, table).split("\n")
            if max(map(len, rows)) > _MAX_TABLE_CHARS:
                edits.append(Edit(table.offset, table.end, "\n".join(map(_unpadded, rows))))
    text, entities = with_visible_hosts(*edited(text, entities, edits))
    if len(text) > 2 * len(source) + MAX_UTF16:  # lists in lists: more indentation than text
        return source, ()
    return text, valid_entities(entities)


def _unpadded(row: str) -> str:
    is_rule = not row.strip("-+")
    return _DASHES.sub("---", row) if is_rule else _SPACES.sub(" ", row).rstrip()


def _entity(found: MessageEntity) -> Entity:
    language = _LANGUAGE.match(restore(found.language or ""))
    url, language_name = restore(found.url or ""), language[0] if language else ""
    return Entity(found.type, found.offset, found.length, url, language_name)


# Signs that read well in a chat: bold headings without emoji, round bullets.
_CONFIG = RenderConfig.isolated()
_CONFIG.cite_expandable = False
_SIGNS = _CONFIG.markdown_symbol
_SIGNS.heading_level_1 = _SIGNS.heading_level_2 = ""
_SIGNS.heading_level_3 = _SIGNS.heading_level_4 = ""
_SIGNS.image, _SIGNS.unordered_list_item = "🖼 ", "•"
_SIGNS.task_completed, _SIGNS.task_uncompleted = "☑", "☐"


_CODE = frozenset({"pre", "code"})
_SOLID = _CODE | {"text_link", "date_time"}
_STYLES = ("bold", "italic", "strikethrough", "spoiler")


def valid_entities(entities: Iterable[Entity]) -> tuple[Entity, ...]:
    """Return entities that may stand together, outer before inner, in order of offsets.

    Code wins over the styles around it, the outer link or quote over the inner one. Types that
    Markdown has no sign for (`underline` of the parser's headings, custom emoji) are left out.
    """
    ordered = sorted(entities, key=_outer_first)
    quotes = _without_overlap(entity for entity in ordered if entity.type == "blockquote")
    solid = _without_overlap(entity for entity in ordered if entity.type in _SOLID)
    codes = [entity for entity in solid if entity.type in _CODE]
    # No style within itself: nested a thousand deep around code, it would fill the memory.
    flat = (_without_overlap(one for one in ordered if one.type == style) for style in _STYLES)
    styles = [piece for entity in chain.from_iterable(flat) for piece in _around(entity, codes)]
    kept: list[Entity] = []
    around: list[Entity] = []
    for entity in sorted((*quotes, *solid, *styles), key=_outer_first):
        around = [outer for outer in around if outer.end > entity.offset]
        # An entity ends at the latest with those around it.
        end = min([entity.end, *(outer.end for outer in around)])
        kept.append(replace(entity, length=end - entity.offset))
        around.append(kept[-1])
    return tuple(kept)


def _outer_first(entity: Entity) -> tuple[int, int, bool]:
    return entity.offset, -entity.length, entity.type in _CODE


def _without_overlap(ordered: Iterable[Entity]) -> list[Entity]:
    """Keep the first of the entities that cover the same text."""
    kept: list[Entity] = []
    for entity in ordered:
        if not kept or kept[-1].end <= entity.offset:
            kept.append(entity)
    return kept


def _around(style: Entity, codes: Sequence[Entity]) -> Iterator[Entity]:
    start = style.offset
    first = bisect_right(codes, start, key=lambda code: code.end)
    for code in codes[first : bisect_left(codes, style.end, key=lambda code: code.offset)]:
        if code.offset > start:
            yield replace(style, offset=start, length=code.offset - start)
        start = code.end
    if start < style.end:
        yield replace(style, offset=start, length=style.end - start)


_MAX_URL_CHARS = 2048
_HOST = re.compile(r"[\w.-]++|[0-9a-f:.]++")
_NAMED_HOST = re.compile(r"(?<![\w.-])[\w-]++(?:\.[\w-]++)++")
_MOMENT = re.compile(r"tg://time\?unix=\d{1,11}", re.ASCII)
_OTHER_DOTS = str.maketrans("。｡", "..")


def with_visible_hosts(text: str, entities: Iterable[Entity]) -> tuple[str, list[Entity]]:
    """Drop what is not a link; add the real host to a link whose text names another host."""
    units = text.encode("utf-16-le")
    kept, edits = [], {}
    for entity in entities:
        if entity.type != "text_link":
            kept.append(entity)
        elif _MOMENT.fullmatch(entity.url):
            kept.append(replace(entity, type="date_time"))
        elif host := host_of(entity.url):
            kept.append(entity)
            if _names_another(text_of(units, entity), entity.url, host):
                edits[entity.end] = Edit(entity.end, entity.end, f" ({host})")
    return edited(text, kept, [edits[end] for end in sorted(edits)])


def host_of(url: str) -> str:
    """Return the host that `url` opens, "" if Telegram must not be given this link.

    A login before the host is refused, because people would take it for the host.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if len(url) > _MAX_URL_CHARS:
        return ""
    if parts.scheme == "mailto":
        return parts.path.rpartition("@")[2].casefold()
    is_web = parts.scheme in ("http", "https") and "@" not in parts.netloc
    return host if is_web and _HOST.fullmatch(host) else ""


def _names_another(text: str, url: str, host: str) -> bool:
    """Return whether the first host that a link's text names is not the one it opens."""
    if text == url:
        return False
    seen = unicodedata.normalize("NFKC", text[:_MAX_URL_CHARS]).translate(_OTHER_DOTS).casefold()
    seen = "".join(char for char in seen if unicodedata.category(char) != "Cf")
    for name in _NAMED_HOST.findall(seen):
        last = name.rpartition(".")[2]
        # A number such as 1.2 is not a host.
        if last.isdigit() == name.replace(".", "").isdigit() and len(last) > 1:
            return bool(name.removeprefix("www.") != host.removeprefix("www."))
    return False


MAX_PARTS = 4
MAX_CHARS = 32_768  # characters of a reply that are shown and kept; the rest is left out

_MAX_BEGINNING_UTF16 = 600
_TEXT = "txt"

_LANGUAGES = """
    python=py javascript=js typescript=ts ruby=rb rust=rs kotlin=kt c++=cpp csharp=cs c#=cs
    golang=go perl=pl haskell=hs elixir=ex clojure=clj julia=jl latex=tex bash=sh shell=sh zsh=sh
    powershell=ps1 markdown=md yml=yaml patch=diff makefile=mk fortran=f90 matlab=m
    py js jsx ts tsx rb rs go java kt c h cpp hpp cs swift php sh ps1 sql html css scss json yaml
    toml xml ini csv md r scala lua dart hs ex clj jl tex diff vue svelte graphql proto asm zig svg
    f90 m pl tf mk
"""
"""Languages, each with the ending of its files if that differs from its name.

No other text after a fence decides about an ending, because a file must not look like a program
only because a text says so.
"""

_WORDS = (word.partition("=") for word in _LANGUAGES.split())
_EXTENSIONS = {language: extension or language for language, _, extension in _WORDS}


async def reply_parts(markdown: str, say: Callable[..., str]) -> tuple[Parts, bool]:
    """Return the parts that show a reply, and whether it is shown to its end.

    `say` returns a sentence by its key and values, as Markdown.
    """
    source = clean(markdown[:MAX_CHARS])
    pieces, files, at = list[str](), list[OutgoingFile](), 0
    for block in code_blocks(source):
        code = source[block.code_start : block.code_end]
        if ">" in block.before or utf16_length(code) <= MAX_UTF16:
            continue
        words = block.info.lower().split()
        extension = _EXTENSIONS.get(words[0], _TEXT) if words else _TEXT
        name = f"code-{len(files) + 1}.{extension}" if files else f"code.{extension}"
        # Code in a list loses the indentation of the list.
        indent, rows = len(block.before), code.split("\n")
        rows = [row[min(indent, len(row) - len(row.lstrip(" "))) :] for row in rows]
        files.append(OutgoingFile(name, "\n".join(rows).encode()))
        count = say("answer.lines", count=code.rstrip("\n").count("\n") + 1)
        pieces += [source[at : block.start], f"{block.before}📎 `{name}` ({count})"]
        at = block.end

    parts = await rendered("".join((*pieces, source[at:])))
    if len(parts) > MAX_PARTS:
        ending = "md" if any(part.entities for part in parts) else _TEXT
        whole = OutgoingFile(f"answer.{ending}", source.encode())
        beginning = split(parts[0].text, parts[0].entities, _MAX_BEGINNING_UTF16)[:1]
        parts, files = with_line(beginning, *render(say("answer.file"))), [whole]

    if files:
        *before, last = parts
        if utf16_length(last.text) <= MAX_CAPTION_UTF16:
            first, *files = files
            parts = (*before, replace(last, file=first))
        parts += tuple(Part("", file=file) for file in files)
    return parts, len(markdown) <= MAX_CHARS
