"""What Telegram accepts as one message, written as the faults of a part."""

import unicodedata

from bot.reply.parts import Entity, Part

STYLES = {"bold", "italic", "underline", "strikethrough", "spoiler"}
BLANK = {"Cc", "Cf", "Zs", "Zl", "Zp"}
KNOWN = STYLES | {"blockquote", "pre", "code", "text_link"}


def faults(part: Part) -> list[str]:
    """Name everything in a part that Telegram would refuse, repair or ignore."""
    try:
        units = part.text.encode("utf-16-le")
    except UnicodeEncodeError:
        return ["lone surrogate in the text"]
    found = []
    if not any(char > " " and unicodedata.category(char) not in BLANK for char in part.text):
        found.append("nothing visible")
    if len(units) // 2 > 4096:
        found.append("too long")
    if len(part.entities) > 100:
        found.append("too many entities")
    if list(part.entities) != sorted(part.entities, key=lambda e: (e.offset, -e.length)):
        found.append("entities out of order")
    for entity in part.entities:
        found += _faults_of(entity, units)
    return found + _nesting_faults(part.entities)


def _faults_of(entity: Entity, units: bytes) -> list[str]:
    if entity.type not in KNOWN:
        return [f"unknown type: {entity}"]
    if entity.offset < 0 or entity.length < 1 or entity.end > len(units) // 2:
        return [f"out of bounds: {entity}"]
    try:
        covered = units[2 * entity.offset : 2 * entity.end].decode("utf-16-le")
    except UnicodeDecodeError:
        return [f"cuts a surrogate pair: {entity}"]
    found = []
    if not covered.strip():
        found.append(f"covers white space only: {entity}")
    if bool(entity.url) != (entity.type == "text_link"):
        found.append(f"url out of place: {entity}")
    if entity.url and not entity.url.lower().startswith(("http://", "https://", "tg:", "mailto:")):
        found.append(f"not a link: {entity}")
    if entity.language and entity.type != "pre":
        found.append(f"language out of place: {entity}")
    return found


def _nesting_faults(entities: tuple[Entity, ...]) -> list[str]:
    """Apply the rules of tdlib's `are_entities_valid`."""
    found = []
    around: list[Entity] = []
    for entity in entities:
        around = [outer for outer in around if outer.end > entity.offset]
        types = {outer.type for outer in around}
        if any(entity.end > outer.end for outer in around):
            found.append(f"overlaps: {entity}")
        if entity.type in types:
            found.append(f"within its own type: {entity}")
        if types & {"pre", "code"}:
            found.append(f"within code: {entity}")
        if entity.type in {"pre", "code"} and types - {"blockquote"}:
            found.append(f"code within a style or link: {entity}")
        around.append(entity)
    return found
