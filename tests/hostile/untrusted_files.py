"""Files that once filled the memory of the bot's own process, or held its event loop."""

import io
import json
import zipfile

from PIL import Image

from tests.servers.bot_api import Upload

_MB = 2**20
_EMPTY_SEGMENT = b"\xff\xe5\x00\x02"


def photo(megabytes: int) -> Upload:
    """Return a photo of this size that was sent as a file; most of it is behind its end."""
    file = io.BytesIO()
    Image.radial_gradient("L").convert("RGB").save(file, "JPEG")
    return Upload(file.getvalue().ljust(megabytes * _MB, b"\0"), "photo.jpg", "image/jpeg")


def picture_of_segments(megabytes: int) -> Upload:
    """Return a JPEG with so many empty segments that a library keeps each as an object."""
    content = b"\xff\xd8" + _EMPTY_SEGMENT * (megabytes * _MB // len(_EMPTY_SEGMENT))
    return Upload(content, "segments.jpg", "image/jpeg")


def export_of(talks: int, messages: int, text: str) -> Upload:
    """Return a Claude export in a zip; each talk is a day later than the one before."""
    said = [{"sender": "human", "text": text}] * messages
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("conversations.json", "w") as file,
    ):
        for number in range(talks):
            at = f"2024-{1 + number // 28 % 12:02}-{1 + number % 28:02}T09:00:00Z"
            talk = {"name": str(number), "created_at": at, "chat_messages": said}
            file.write(b"," if number else b"[")
            file.write(json.dumps(talk).encode())
        file.write(b"]")
    return Upload(packed.getvalue(), "export.zip", "application/zip")
