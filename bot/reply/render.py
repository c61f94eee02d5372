"""The model's Markdown as message parts: text with entities, cut to what Telegram accepts.

The parser is telegramify-markdown. `placeholders`, `formulas` and `source` prepare the text for it;
`links`, `entities` and `split` work on its result. Time and output grow with the length of the
source and no faster, whatever the model was made to write.
"""

import asyncio
import re
from collections.abc import Collection, Iterable

import structlog
from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import convert_with_segments

from bot.reply.entities import legal
from bot.reply.links import with_visible_hosts
from bot.reply.parts import Entity, Part
from bot.reply.placeholders import bounded, clean, restore
from bot.reply.source import protect
from bot.reply.split import MAX_UTF16, split
from bot.reply.utf16 import Edit, edited, text_of

log = structlog.get_logger(__name__)

SHORT_CHARS = 2000
"""A text up to this length is rendered in the event loop, which takes at most some 20 ms."""

_MAX_RENDER_S = 5.0
_MAX_TABLE_CHARS = 64
"""Length of the longest line of a table that keeps its padding; a phone shows some forty."""

_DASHES = re.compile("-+")
_SPACES = re.compile(" +")
_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


async def rendered(source: str) -> tuple[Part, ...]:
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


def render(markdown: str) -> tuple[Part, ...]:
    """Return the parts that show `markdown`; () if nothing in it is visible."""
    return split(*parsed(markdown)) or plain(markdown)


def plain(text: str) -> tuple[Part, ...]:
    """Return parts without formatting, for a text whose entities Telegram refuses."""
    return split(clean(text))


def parsed(markdown: str) -> tuple[str, tuple[Entity, ...]]:
    """Return the text that shows `markdown`, and its entities."""
    source = clean(markdown)
    shown, found, segments = convert_with_segments(
        protect(bounded(source)), latex_escape=False, config=_CONFIG
    )
    fences = {segment.utf16_start for segment in segments}
    text, entities = _without_padding(restore(shown), map(_entity, found), fences)
    text, entities = with_visible_hosts(text, entities)
    if len(text) > 2 * len(source) + MAX_UTF16:  # lists in lists: more indentation than text
        return source, ()
    return text, legal(entities)


def _entity(found: MessageEntity) -> Entity:
    language = _LANGUAGE.match(restore(found.language or ""))
    return Entity(
        found.type,
        found.offset,
        found.length,
        url=restore(found.url or ""),
        language=language[0] if language else "",
    )


def _without_padding(
    text: str, entities: Iterable[Entity], fences: Collection[int]
) -> tuple[str, list[Entity]]:
    """Remove the padding of wide tables, which a phone would wrap into blank lines.

    The parser pads each cell to the widest of its column. A table is a `pre` that begins at none of
    `fences`, which are UTF-16 offsets.
    """
    units, shown = text.encode("utf-16-le"), list(entities)
    edits = []
    for table in shown:
        if table.type == "pre" and table.offset not in fences:
            rows = text_of(units, table).split("\n")
            if max(map(len, rows)) > _MAX_TABLE_CHARS:
                edits.append(Edit(table.offset, table.end, "\n".join(map(_unpadded, rows))))
    return edited(text, shown, edits)


def _unpadded(row: str) -> str:
    is_rule = not row.strip("-+")
    return _DASHES.sub("---", row) if is_rule else _SPACES.sub(" ", row).rstrip()


def _config() -> RenderConfig:
    """Return signs that read well in a chat: bold headings without emoji, round bullets."""
    config = RenderConfig.isolated()
    config.cite_expandable = False
    signs = config.markdown_symbol
    signs.heading_level_1 = signs.heading_level_2 = ""
    signs.heading_level_3 = signs.heading_level_4 = ""
    signs.image = "🖼 "
    signs.unordered_list_item = "•"
    signs.task_completed, signs.task_uncompleted = "☑", "☐"
    return config


_CONFIG = _config()
