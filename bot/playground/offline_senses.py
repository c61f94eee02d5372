"""What the offline models say of a picture and a sound; they understand neither.

Of a picture they tell format, size and main colors. A sound has the words that were typed with it.
"""

import asyncio
from collections import OrderedDict
from hashlib import sha256
from io import BytesIO

from PIL import Image

from memory.message import Picture

_COLORS = {
    "black": (0, 0, 0),
    "white": (255, 255, 255),
    "gray": (128, 128, 128),
    "red": (200, 30, 30),
    "orange": (240, 140, 30),
    "yellow": (245, 225, 60),
    "green": (50, 150, 60),
    "turquoise": (60, 190, 190),
    "blue": (40, 80, 200),
    "light blue": (140, 190, 240),
    "purple": (130, 50, 160),
    "pink": (245, 160, 190),
    "brown": (120, 75, 40),
    "beige": (225, 205, 170),
}
_GRID = 32
"""A picture is looked at as so many rows and columns of colors."""
_MIN_SHARE = 0.2
_MAX_COLORS = 3
_MAX_SOUNDS = 20


class OfflineTranscriber:
    """Returns the words that a person typed with a sound; for another sound it hears nothing."""

    def __init__(self) -> None:
        self._typed: OrderedDict[bytes, str] = OrderedDict()

    def keep(self, sound: bytes, words: str) -> None:
        """Keep the words of a sound; those of the latest sounds are known."""
        self._typed[sha256(sound).digest()] = words
        while len(self._typed) > _MAX_SOUNDS:
            self._typed.popitem(last=False)

    async def words(self, sound: bytes, ending: str) -> str:  # noqa: ARG002 - the port's
        """Return the words, "" if none were typed."""
        return self._typed.get(sha256(sound).digest(), "")


async def description_of(picture: Picture) -> str:
    """Return what can be said of a picture without understanding it."""
    kind = picture.mime_type.removeprefix("image/").upper()
    size = f"{kind} picture, {picture.width} × {picture.height} pixels"
    colors = await asyncio.to_thread(_main_colors, picture.content)
    return f"{size}, mostly {' and '.join(colors)}" if colors else size


def _main_colors(content: bytes) -> list[str]:
    """Return the colors that fill much of a picture, the largest first; [] for a broken one."""
    try:
        with Image.open(BytesIO(content)) as picture:
            picture.draft("RGB", (_GRID * 4, _GRID * 4))
            pixels = picture.convert("RGB").resize((_GRID, _GRID), Image.Resampling.BOX)
    except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
        return []
    shares = dict.fromkeys(_COLORS, 0)
    raw = pixels.tobytes()
    for at in range(0, len(raw), 3):
        shares[min(_COLORS, key=lambda name: _distance(_COLORS[name], raw[at : at + 3]))] += 1
    largest = sorted(shares, key=lambda name: -shares[name])[:_MAX_COLORS]
    return [name for name in largest if shares[name] >= _MIN_SHARE * _GRID**2]


def _distance(one: tuple[int, int, int], other: bytes) -> int:
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))
