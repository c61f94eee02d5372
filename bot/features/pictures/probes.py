"""Photos: does the model that answers see them. The bot also works with a model that does not."""

from io import BytesIO

from PIL import Image

from bot.features.pictures.settings import PictureSettings
from bot.model.call import ModelRequest, PromptMessage
from bot.model.chat_model import ChatParameters, OpenAIChatModel
from bot.model.openai_client import open_client
from bot.probe import Probe, Row, Rows
from config.values import secret_of
from memory.message import Picture

_WHAT = "Photos"
_TIMEOUT_S = 30.0
_SIDE = 64
_REPLY_TOKENS = 256


async def _photos(settings: PictureSettings) -> Rows:
    """Yield one row; a small white picture is sent."""
    if settings.image_detail == "off":
        yield Row(_WHAT, "ok", "off: people are told that the model cannot see pictures")
        return
    name, key = settings.openai_model, secret_of(settings.openai_api_key)
    file = BytesIO()
    Image.new("RGB", (_SIDE, _SIDE), "white").save(file, "PNG")
    picture = Picture(0, file.getvalue(), "image/png", _SIDE, _SIDE, settings.image_detail)
    messages = (
        PromptMessage("system", "Answer with one word."),
        PromptMessage("user", "Which color is this?", pictures=(picture,)),
    )
    parameters = ChatParameters(_REPLY_TOKENS, settings.openai_reasoning)
    api = settings.openai_api
    async with open_client(settings.openai_base_url, key, _TIMEOUT_S, api=api) as client:
        model = OpenAIChatModel(client, name, _TIMEOUT_S, parameters)
        reply = await model.complete(ModelRequest(messages))
    if reply.is_blind:
        yield Row(_WHAT, "ok", f"{name} cannot see pictures: people are told so")
    else:
        yield Row(_WHAT, "ok", f"{name} sees pictures ({settings.image_detail} detail)")


PROBES = (Probe(_WHAT, _photos, lambda settings: not settings.lacks_key()),)
