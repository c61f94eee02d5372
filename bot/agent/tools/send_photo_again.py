"""`send_photo_again`: sends a photo that was seen here before, from Telegram's own copy of it."""

import re

from pydantic import Field

from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool
from memory.behaviors.tool_output import OutgoingFile, ToolOutput
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.search.message_search import SearchFilter

_MAX_CHARS = 300
_NUMBER = re.compile(r"#?(\d{1,9})")
"""A message as `search_memory` names it."""


class SendPhotoAgainArguments(Arguments):
    """What the photo shows, or the number of its message."""

    query: str = Field(description="What it shows or #12", min_length=1, max_length=500)


async def _run(arguments: SendPhotoAgainArguments, context: AgentContext) -> str:
    history = context.chat_history
    if number := _NUMBER.fullmatch(arguments.query.strip()):
        found = await _numbered(history, int(number[1]))
    else:
        only_photos = SearchFilter(only_photos=True)
        hits = await history.search(arguments.query, 1, search_filter=only_photos)
        found = hits[0].hit if hits else None
    if found is None:
        return "No photo about this was seen here."
    photo = OutgoingFile("photo.jpg", file_id=found.photo, kind="photo")
    return ToolOutput(found.text[:_MAX_CHARS], [photo])


async def _numbered(history: ChatHistory, seq: int) -> Message | None:
    """Return the photo that a message describes, or else the first one that was sent with it."""
    await history.fill()
    found = [each for each in history.messages if each.seq not in history.hidden]
    exchange = next((each.exchange for each in found if each.seq == seq), 0)
    photos = [each for each in found if each.photo and each.exchange == exchange]
    return next((each for each in photos if each.seq == seq), photos[0] if photos else None)


SEND_PHOTO_AGAIN = Tool(
    "send_photo_again",
    "Send a photo again",
    SendPhotoAgainArguments,
    _run,
)
