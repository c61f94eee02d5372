"""Sending files of each kind, with Telegram's refusals."""

from dataclasses import replace
from io import BytesIO

from PIL import Image, UnidentifiedImageError

from bot.playground.bot_api.methods import file_of, send
from bot.playground.bot_api.values import BadRequestError, Media, MediaKind
from tests.servers.bot_api.formatting import read_caption
from tests.servers.bot_api.methods.messages import addressed
from tests.servers.bot_api.parameters import Parameters
from tests.servers.bot_api.world import World

_MAX_PHOTO_BYTES = 10 * 2**20
_MAX_SIDES = 10_000
_MAX_RATIO = 20


async def send_document(world: World, given: Parameters) -> object:
    """Send a file as it is."""
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
    caption = read_caption(given, world.users)
    message = addressed(world, given)
    if not given.upload(name) and not given.text(name):
        raise BadRequestError(f"there is no {name} in the request")
    media = Media(kind or name, file_of(world, given, name))
    return await send(world, replace(message, media=media), caption)


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
