"""How learned words are kept: on one line, of bounded length, fit to be stored as UTF-8."""

import re

UNTRUSTED_MARK = "(partly others' words)"
"""Stands behind what rests on forwarded, quoted, read or looked-up text."""


_CONTROLS = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def one_line(text: str) -> str:
    """Return words on one line; half an emoji becomes a question mark."""
    return " ".join(_CONTROLS.sub(" ", text).encode("utf-8", "replace").decode().split())


def cut(text: str, max_bytes: int) -> str:
    """Return text of at most so many bytes of UTF-8; one that was longer ends after a word."""
    encoded = text.encode()
    if len(encoded) <= max_bytes:
        return text
    head = encoded[: max_bytes - len("…".encode())].decode(errors="ignore")
    return (head.rpartition(" ")[0] or head) + "…"
