"""Says in words what stands in a message without text: a sticker, a place, a poll, a rich message.

The words are the same in every language.

The Bot API library does not know rich messages (Bot API 10.1), so their raw JSON is read here, and
no more of it than Telegram's own limits allow, whatever was sent.
"""

from collections.abc import Iterator

import telegram

RICH_MESSAGE = "rich_message"
"""Newer than the Bot API that PTB knows: its content is read from the raw JSON."""


def spelled(message: telegram.Message) -> str:
    """Return the words for the content of a message, "" if we have none for it."""
    words = ""
    if RICH_MESSAGE in message.api_kwargs:
        words = plain_text(message.api_kwargs[RICH_MESSAGE])
    elif message.sticker:
        words = message.sticker.emoji or ""
    elif message.venue:  # before the location, which a venue also sets
        venue = message.venue
        words = f"📍 {venue.title}, {venue.address} ({_place(venue.location)})"
    elif message.location:
        words = f"📍 {_place(message.location)}"
    elif message.poll:
        options = (f"- {option.text}" for option in message.poll.options)
        words = "\n".join((f"📊 {message.poll.question}", *options))
    elif message.dice:
        words = f"{message.dice.emoji} {message.dice.value}"
    return words


def _place(location: telegram.Location) -> str:
    accuracy = location.horizontal_accuracy
    around = f" (±{accuracy:.0f} m)" if accuracy else ""
    return f"{location.latitude:.4f}, {location.longitude:.4f}{around}"


_MAX_CHARS = 32_768
_MAX_BLOCKS = 500
_MAX_DEPTH = 16
_MAX_NODES = 20_000
"""Pieces of formatted text; Telegram has no limit of its own for them."""

_LINES = ("summary", "text", "expression", "caption", "credit")
"""The fields of a block that hold formatted text, each read as a line."""
_INLINE = ("text", "expression", "alternative_text")
"""The fields of formatted text, the first one that is there counts."""


def plain_text(rich_message: object) -> str:
    """Return the text of a rich message, one line for each block; "" if it has none."""
    blocks = rich_message.get("blocks") if isinstance(rich_message, dict) else None
    lines = (line.strip() for line in _Walk().blocks(blocks, ""))
    return "\n".join(line for line in lines if line)[:_MAX_CHARS].rstrip()


class _Walk:
    """One reading; it ends when one of the limits is reached."""

    def __init__(self) -> None:
        self._chars = _MAX_CHARS
        self._blocks = _MAX_BLOCKS
        self._nodes = _MAX_NODES

    def blocks(self, nodes: object, label: str, depth: int = 0) -> Iterator[str]:
        """Yield the lines of blocks or list items; `label` stands before the first line."""
        if not isinstance(nodes, list) or depth >= _MAX_DEPTH:
            return
        for node in nodes:
            if self._blocks <= 0 or self._chars <= 0:
                return
            self._blocks -= 1
            for line in self._block(node, depth):
                yield f"{label} {line}" if label else line
                label = ""

    def _block(self, node: object, depth: int) -> Iterator[str]:
        if not isinstance(node, dict):
            return
        for name in _LINES:
            if name in node:
                yield self._inline(node[name])
        for row in _list(node.get("cells"))[: self._blocks]:
            self._blocks -= 1
            yield " | ".join(self._inline(cell) for cell in _list(row))
        for item in _list(node.get("items")):
            label = item.get("label") if isinstance(item, dict) else None
            yield from self.blocks([item], label if isinstance(label, str) else "-", depth + 1)
        yield from self.blocks(node.get("blocks"), "", depth + 1)

    def _inline(self, node: object, depth: int = 0) -> str:
        self._nodes -= 1
        if self._chars <= 0 or self._nodes <= 0 or depth > 2 * _MAX_DEPTH:
            return ""
        if isinstance(node, str):
            text = node[: self._chars]
            self._chars -= len(text)
            return text
        if isinstance(node, list):
            return "".join(self._inline(each, depth + 1) for each in node)
        if isinstance(node, dict):
            name = next((name for name in _INLINE if name in node), "")
            return self._inline(node.get(name), depth + 1)
        return ""


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []
