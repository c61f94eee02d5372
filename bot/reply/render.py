"""The model's Markdown as Telegram shows it: text with entities, in parts it accepts.

Pure functions. The parser is telegramify-markdown; what it leaves to do is done around it:
`bounds`, `formulas` and `source` before it, `tables`, `links`, `entities` and `split` after it.
Time and output grow with the length of the source and no faster; `replies` bounds that length.
"""

import re

from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import convert_with_segments

from bot.reply.bounds import bounded
from bot.reply.entities import legal
from bot.reply.links import honest
from bot.reply.parts import Entity, Part
from bot.reply.placeholders import clean, restore
from bot.reply.source import protect
from bot.reply.split import MAX_UTF16, split
from bot.reply.tables import narrowed

_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


def render(markdown: str) -> tuple[Part, ...]:
    """Return the parts that show `markdown`; none when there is nothing to see in it."""
    source = clean(markdown)
    text, entities = _parsed(source)
    if len(text) > 2 * len(source) + MAX_UTF16:  # lists in lists: more indentation than words
        return split(source)
    return split(text, entities) or split(source)


def plain(text: str) -> tuple[Part, ...]:
    """Return `text` as it stands, for when Telegram refuses the entities."""
    return split(clean(text))


def _parsed(source: str) -> tuple[str, tuple[Entity, ...]]:
    shown, found, segments = convert_with_segments(
        protect(bounded(source)), latex_escape=False, config=_CONFIG
    )
    fences = {segment.utf16_start for segment in segments}
    text, entities = narrowed(restore(shown), map(_entity, found), fences)
    text, entities = honest(text, entities)
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
