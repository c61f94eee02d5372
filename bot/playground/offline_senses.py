"""What the offline models say of a picture and a sound; they understand neither.

Of a picture they tell format and size. A sound has the words that were typed with it.
"""

from collections import OrderedDict
from hashlib import sha256
from typing import Any

import orjson

from bot.model.call import WhichModel
from memory.message import Picture

_MAX_SOUNDS = 20


class OfflineServer:
    """Stands for a server of sounds: it returns the words that a person typed with one.

    For another sound it hears nothing.
    """

    which: WhichModel = "first"

    def __init__(self) -> None:
        self._typed: OrderedDict[bytes, str] = OrderedDict()

    def keep(self, sound: bytes, words: str) -> None:
        """Keep the words of a sound; those of the latest sounds are known."""
        self._typed[sha256(sound).digest()] = words
        while len(self._typed) > _MAX_SOUNDS:
            self._typed.popitem(last=False)

    def to(
        self,
        base_url: str,  # noqa: ARG002 - the port's
        key: str | None,  # noqa: ARG002
        timeout_s: float,  # noqa: ARG002
        which: WhichModel = "first",  # noqa: ARG002
    ) -> "OfflineServer":
        """Return itself: there is no other server."""
        return self

    async def post_whole(
        self,
        path: str,  # noqa: ARG002 - the port's
        body: dict[str, Any],  # noqa: ARG002
        max_bytes: int,  # noqa: ARG002
        silence_s: float | None = None,  # noqa: ARG002
        file: tuple[str, bytes, str] | None = None,
    ) -> bytes:
        """Return the words of a sound as a transcription, "" if none were typed."""
        sound = file[1] if file else b""
        return orjson.dumps({"text": self._typed.get(sha256(sound).digest(), "")})


def description_of(picture: Picture) -> str:
    """Return what can be said of a picture without understanding it."""
    kind = picture.mime_type.removeprefix("image/").upper()
    return f"{kind} picture, {picture.width} × {picture.height} pixels"
