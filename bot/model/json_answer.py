"""Finds the JSON object in what a model wrote, fenced, explained or thought about as it may be."""

import json
from collections.abc import Collection, Iterator

from bot.model.model_errors import AnswerUnreadable

_DECODER = json.JSONDecoder(strict=False)
"""Takes line breaks inside of strings, which cheap models write as they are."""
_MAX_BRACES = 1_000
"""Each one that opens nothing costs up to a walk through the text; a model may write them for ever.
"""


def read_object(text: str, names: Collection[str]) -> dict[str, object]:
    """Return the last object in `text` that has any of `names`; raise `AnswerUnreadable`."""
    try:
        whole = _DECODER.decode(text)
    except (ValueError, RecursionError):
        found = [each for each in _objects(text) if not each.keys().isdisjoint(names)]
    else:
        found = [whole] if isinstance(whole, dict) else []
    if not found or found[-1].keys().isdisjoint(names):
        raise AnswerUnreadable("no such JSON object")
    return found[-1]


def _objects(text: str) -> Iterator[dict[str, object]]:
    """Yield the outermost objects in a text, in their order."""
    start = text.find("{")
    for _ in range(_MAX_BRACES):
        if start < 0:
            return
        try:
            found, end = _DECODER.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)
