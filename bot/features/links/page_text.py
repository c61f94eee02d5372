"""Reads the main text of a web page, in a process of its own: `page_text.py CHARACTERS MB SECONDS`.

Menus and footers are left out by trafilatura. A page in which it finds nothing is read as a whole,
and so is one of so many elements that it would take seconds.
It writes `{"title": "...", "text": "..."}`.
"""

from contextlib import suppress

from trafilatura import extract

from bot.parsing.answers import Sections, answer
from bot.parsing.html_text import add_html, tree_of

_MAX_WHOLE_CHARS = 2_000_000
_MAX_ELEMENTS = 30_000


def _read(content: bytes, max_chars: int) -> dict[str, object]:
    tree = tree_of(content)
    if tree is None:
        return {"title": "", "text": ""}
    title = " ".join((tree.findtext(".//title") or "").split())[:200]
    text = None
    if sum(1 for _ in tree.iter()) <= _MAX_ELEMENTS:
        with suppress(RecursionError):  # lists in lists
            text = extract(
                tree, output_format="txt", include_comments=False, fast=True, favor_recall=True
            )
    if not text:
        whole = Sections(_MAX_WHOLE_CHARS)
        add_html(whole, content)
        text = "\n\n".join(part for _, part in whole.found())
    return {"title": title, "text": text[:max_chars]}


if __name__ == "__main__":
    answer(_read)
