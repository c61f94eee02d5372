"""Files that go out with a reply: their place among its parts, and what is left without them."""

from collections.abc import Sequence
from dataclasses import replace

from bot.reply.parts import Part
from bot.reply.split import MAX_CAPTION_UTF16, with_line
from bot.reply.utf16 import utf16_length

_MARKS = {"photo": "picture", "voice": "voice message"}


def with_attached(
    parts: tuple[Part, ...], attached: Sequence[Part], *, as_caption: bool
) -> tuple[Part, ...]:
    """Return the files before the text; a short text becomes the caption of the last file.

    Each part of `attached` has a file and no text. Without `as_caption` the text stays a message of
    its own, which can be edited later.
    """
    if not attached:
        return parts
    fits = len(parts) == 1 and utf16_length(parts[0].text) <= MAX_CAPTION_UTF16
    if not (as_caption and fits) or parts[0].file:
        return (*attached, *parts)
    *before, last = attached
    return (*before, replace(parts[0], file=last.file, instead=last.instead))


def without_file(part: Part) -> tuple[Part, ...]:
    """Return what is left of a part without its file: its caption, and what stands instead."""
    rest = replace(part, file=None, instead="")
    if part.instead:
        return with_line((rest,), Part(part.instead))
    return (rest,) if part.text else ()


def said_with(text: str, attached: Sequence[Part]) -> str:
    """Return a reply as the history keeps it, with a line for each file that was sent with it."""
    files = [part.file for part in attached if part.file]
    lines = (f"[sent {_MARKS.get(file.kind, 'file')}: {file.name}]" for file in files)
    return "\n".join(filter(None, (text, *lines)))
