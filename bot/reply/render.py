"""The model's Markdown as Telegram shows it: text with entities, in parts it accepts.

Pure functions. The parser is telegramify-markdown; what it leaves to do is done around it: `source`
and `tables` close to it, `entities` and `split` after it.
"""

import re

from telegramify_markdown import MessageEntity, RenderConfig
from telegramify_markdown.converter import convert_with_segments

from bot.reply.entities import is_link, legal
from bot.reply.parts import Entity, Part
from bot.reply.source import clean, protect, restore
from bot.reply.split import MAX_UTF16, split
from bot.reply.tables import narrowed

_LANGUAGE = re.compile(r"[\w+#.-]{1,32}")


def render(markdown: str) -> tuple[Part, ...]:
    """Return the parts that show `markdown`; none when there is nothing to see in it."""
    source = clean(markdown)
    text, entities = _parsed(source)
    if len(text) > 2 * len(source) + MAX_UTF16:  # lists a thousand deep: indentation squared
        return split(source)
    return split(text, entities) or split(source)


def plain(text: str) -> tuple[Part, ...]:
    """Return `text` as it stands, for when Telegram refuses the entities."""
    return split(clean(text))


def _parsed(source: str) -> tuple[str, tuple[Entity, ...]]:
    shown, found, segments = convert_with_segments(
        protect(source), latex_escape=False, config=_CONFIG
    )
    fences = {segment.utf16_start for segment in segments}
    text, entities = narrowed(restore(shown), map(_entity, found), fences)
    return text, legal(one for one in entities if one.type != "text_link" or is_link(one.url))


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
