"""Sending files of each kind and fetching them, with Telegram's refusals."""

from dataclasses import replace
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from tests.servers.bot_api.errors import BadRequestError
from tests.servers.bot_api.formatting import read_caption
from tests.servers.bot_api.methods.messages import addressed, send
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.shapes import file_shape
from tests.servers.bot_api.values import Media, MediaKind, StoredFile
from tests.servers.bot_api.world import World

_MAX_DOWNLOAD_BYTES = 20 * 2**20
_MAX_PHOTO_BYTES = 10 * 2**20
_MAX_SIDES = 10_000
_MAX_RATIO = 20


async def send_document(world: World, given: Parameters) -> object:
    return await _send(world, given, "document")


async def send_photo(world: World, given: Parameters) -> object:
    """Send a picture, which Telegram decodes."""
    if upload := given.upload("photo"):
        _check_photo(upload.content)
    return await _send(world, given, "photo")


async def send_voice(world: World, given: Parameters) -> object:
    """Send a voice note; another format than OGG with Opus becomes a music file."""
    upload = given.upload("voice")
    is_voice = upload is None or upload.content.startswith(b"OggS")
    return await _send(world, given, "voice", "voice" if is_voice else "audio")


async def _send(
    world: World, given: Parameters, name: MediaKind, kind: MediaKind | None = None
) -> object:
    caption = read_caption(given)
    message = addressed(world, given)
    media = Media(kind or name, _file_of(world, given, name))
    return await send(world, replace(message, media=media), caption)


async def get_file(world: World, given: Parameters) -> object:
    file = world.files.get(given.text("file_id"))
    if file is None:
        raise BadRequestError("invalid file_id")
    if len(file.content) > _MAX_DOWNLOAD_BYTES:
        raise BadRequestError("file is too big")
    return file_shape(file)


def _file_of(world: World, given: Parameters, name: str) -> StoredFile:
    if upload := given.upload(name):
        return world.store(upload)
    if not given.text(name):
        raise BadRequestError(f"there is no {name} in the request")
    file = world.files.get(given.text(name))
    if file is None:
        raise BadRequestError("wrong file identifier/HTTP URL specified")
    return file


def _check_photo(content: bytes) -> None:
    try:
        with Image.open(BytesIO(content)) as picture:
            picture.load()
            width, height = picture.size
    except (UnidentifiedImageError, OSError, SyntaxError):
        raise BadRequestError("IMAGE_PROCESS_FAILED") from None
    if len(content) > _MAX_PHOTO_BYTES:
        raise BadRequestError("PHOTO_SAVE_FILE_INVALID")
    is_long = max(width, height) > _MAX_RATIO * min(width, height)
    if is_long or width + height > _MAX_SIDES:
        raise BadRequestError("PHOTO_INVALID_DIMENSIONS")
