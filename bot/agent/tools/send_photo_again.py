"""`send_photo_again`: sends a photo that was seen here before, from Telegram's own copy of it."""

from pydantic import Field

from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool
from memory.behaviors.tool_output import OutgoingFile, ToolOutput
from memory.search.message_search import SearchFilter

_MAX_CHARS = 300


class SendPhotoAgainArguments(Arguments):
    """What the photo shows."""

    query: str = Field(description="What it shows", min_length=1, max_length=500)


async def _run(arguments: SendPhotoAgainArguments, context: AgentContext) -> str:
    found = await context.chat_history.search(
        arguments.query, 1, search_filter=SearchFilter(only_photos=True)
    )
    if not found:
        return "No photo about this was seen here."
    hit = found[0].hit
    photo = OutgoingFile("photo.jpg", file_id=hit.photo, kind="photo")
    return ToolOutput(hit.text[:_MAX_CHARS], [photo])


SEND_PHOTO_AGAIN = Tool(
    "send_photo_again",
    "Send a photo that was seen here earlier.",
    SendPhotoAgainArguments,
    _run,
)
