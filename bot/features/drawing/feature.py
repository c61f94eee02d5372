"""What drawing adds to the bot: the tool `draw_picture`, over OpenAI's images API.

The picture is sent with the answer, and its name says what it shows. The history keeps the names of
an answer's files, so the picture is found by its name later.
"""

from base64 import b64decode
from dataclasses import dataclass

import structlog
from pydantic import Field

from bot.agent.tool_files import MAX_FILE_BYTES, MAX_FILES
from bot.feature import Feature, Services
from bot.features.drawing.settings import DrawingSettings
from bot.http_client import MAX_VALUES, read_json
from bot.model.call import ObservedCall, Post, Posts, Usage, time_limit
from bot.model.model_errors import (
    UNREADABLE,
    AnswerIncomplete,
    ContentRefused,
    ModelError,
    ModelRefused,
    NotAModel,
    reason_of,
)
from bot.model.wire import list_of, object_of, usage_of
from bot.parsing.pictures import format_by_signature
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError
from memory.behaviors.tool_output import OutgoingFile, ToolOutput

log = structlog.get_logger(__name__)

_PATH = "/images/generations"
_MAX_BYTES = MAX_FILE_BYTES * 3 // 2  # Base64 makes a picture a third larger
_SHARE_OF_TURN = 2 / 3  # good models need a minute or two, and the answer needs time after them


def feature(services: Services) -> Feature:
    """Return the feature; it is on if a model is named."""
    settings = services.own(DrawingSettings)
    timeout_s = settings.turn_timeout_s * _SHARE_OF_TURN
    drawer = Drawer(services.models.client, settings.openai_image_model or "", timeout_s)
    return Feature(name="drawing", tools=[draw_picture_tool(drawer)])


class DrawPictureArguments(Arguments):
    """What to draw, and what the picture is called."""

    prompt: str = Field(min_length=1, max_length=4_000, description="What to draw, in detail")
    title: str = Field(
        min_length=1,
        max_length=200,
        description="What it shows, in up to six words of the person's language",
    )


@dataclass(slots=True, eq=False)
class Drawer:
    """One model that draws."""

    client: Posts
    model: str
    timeout_s: float
    _takes_format: bool = True

    async def picture(self, prompt: str) -> bytes:
        """Return the bytes of one picture, as the server sent them; raise `ModelError`."""
        body: dict[str, object] = {"model": self.model, "prompt": prompt}
        with ObservedCall("drawing", self.model, self.client, Usage(drawn_images=1)) as call:
            async with time_limit(self.timeout_s):
                answer = await self._posted(body)
            try:
                fields = object_of(read_json(answer, MAX_VALUES))
                drawn = object_of(list_of(fields["data"])[0])
                call.usage += usage_of(fields.get("usage") or {}, "input", "output")
                call.usage += Usage(drawn_images=1)
                picture = b64decode(str(drawn["b64_json"]), validate=True)
            except (*UNREADABLE, KeyError, AnswerIncomplete) as error:
                raise NotAModel(type(error).__name__) from error
            if format_by_signature(picture) is None:
                raise NotAModel("no picture")
            return picture

    async def _posted(self, body: dict[str, object]) -> bytes:
        """Ask for the picture itself: some models send an address if they are not asked for it.

        Others refuse to be asked, because they always send the picture.
        """
        asked = body | {"response_format": "b64_json"} if self._takes_format else body
        try:
            # The time limit ends a call before its silence does, so nothing is drawn twice.
            return await self.client.post_whole(Post(_PATH, asked, 2 * self.timeout_s), _MAX_BYTES)
        except ModelRefused as refusal:
            if asked is body or not refusal.objects_to("response_format"):
                raise
            self._takes_format = False
            return await self._posted(body)


def draw_picture_tool(drawer: Drawer) -> Tool[DrawPictureArguments]:
    """Return the tool."""

    async def run(arguments: DrawPictureArguments, context: AgentContext) -> str:
        if len(context.files) >= MAX_FILES:
            raise ToolError(f"an answer has at most {MAX_FILES} files, and this one has them")
        place = OutgoingFile(arguments.title)  # kept, because calls of one step run side by side
        context.files.append(place)
        try:
            picture = await drawer.picture(arguments.prompt)
        except ContentRefused as refusal:
            raise ToolError(
                "the filter of the image server does not allow this picture; tell the person "
                "kindly that you may not draw it, and offer to draw something else"
            ) from refusal
        except ModelError as error:
            log.warning("picture not drawn", **reason_of(error, "OPENAI_IMAGE_MODEL"))
            raise ToolError(
                "the picture could not be drawn; tell the person, and that they may ask again later"
            ) from error
        finally:
            context.files.remove(place)
        return ToolOutput("It is drawn.", [OutgoingFile(f"{arguments.title}.png", picture)])

    return Tool(
        "draw_picture",
        "Draw a new picture and send it with your answer",
        DrawPictureArguments,
        run,
        is_untrusted=False,
        is_reader=True,
        uses_memory=False,
        timeout_s=2 * drawer.timeout_s,  # the limit of the call ends it before
    )
