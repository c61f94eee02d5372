"""Links that open what they name: only web and mail addresses, none under another host's name.

A link to `tg://time?unix=<seconds>` becomes a moment that each client shows in its own time zone.
"""

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import replace
from urllib.parse import urlsplit

from bot.reply.parts import Entity
from bot.reply.utf16 import Edit, edited, text_of

_MAX_CHARS = 2048
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
    if len(url) > _MAX_CHARS:
        return ""
    if parts.scheme == "mailto":
        return parts.path.rpartition("@")[2].casefold()
    is_web = parts.scheme in ("http", "https") and "@" not in parts.netloc
    return host if is_web and _HOST.fullmatch(host) else ""


def _names_another(text: str, url: str, host: str) -> bool:
    """Return whether the first host that a link's text names is not the one it opens."""
    if text == url:
        return False
    seen = unicodedata.normalize("NFKC", text).translate(_OTHER_DOTS).casefold()
    seen = "".join(char for char in seen if unicodedata.category(char) != "Cf")
    named = (name for name in _NAMED_HOST.findall(seen) if _is_host(name))
    first = next(named, host)
    return first.removeprefix("www.") != host.removeprefix("www.")


def _is_host(name: str) -> bool:
    """Return whether a name with dots may be a host; a number such as 1.2 is not one."""
    last = name.rpartition(".")[2]
    return last.isdigit() == name.replace(".", "").isdigit() and len(last) > 1
