"""`search_memory`: lets the model search earlier messages of this conversation."""

import re
from datetime import date, datetime, time, tzinfo
from math import inf

from pydantic import Field

from bot.prompt.sections import memory_line
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool
from memory.message import Message
from memory.search.excerpt import relevant_excerpt
from memory.search.message_search import SearchFilter
from memory.text.untrusted_text import harmless

_EXCERPT_CHARS = 600
_NUMBER = re.compile(r" \(\d{1,6}\)\Z")
"""A number after a name that several people of a group have. The stored name has no number."""


class SearchMemoryArguments(Arguments):
    """Query, days, speaker and number of results."""

    query: str = Field(
        description="What to look for, in the words that were probably used",
        min_length=1,
        max_length=500,
    )
    since: date | None = Field(default=None, description="First day to look at, as 2026-03-31")
    until: date | None = Field(default=None, description="Last day to look at, as 2026-04-30")
    speaker: str = Field(
        default="",
        description="Only what this person said; `assistant` for you; empty for everybody",
        max_length=64,
    )
    k: int = Field(default=8, description="How many exchanges to return at most", ge=1, le=20)


def search_memory_tool(zone: tzinfo) -> Tool[SearchMemoryArguments]:
    """Return the tool; `zone` is the time zone of days and of the dates in results."""

    async def run(arguments: SearchMemoryArguments, context: AgentContext) -> str:
        results = await context.chat_history.search(
            arguments.query, arguments.k, search_filter=_search_filter(arguments, zone)
        )
        if not results:
            return "Nothing was found about this in earlier messages."
        by_time = sorted(results, key=lambda result: result.seq)
        return "\n".join(
            memory_line(
                message,
                _excerpt(message, arguments.query),
                context.now,
                zone,
                context.speakers,
            )
            for result in by_time
            for message in result.messages
        )

    return Tool(
        "search_memory",
        "Search everything said earlier in this conversation, however long ago, also by day and by "
        "speaker. Use it when the person refers to something that is neither in the recent "
        "messages nor in <memory>, or for a second look under another name.",
        SearchMemoryArguments,
        run,
        is_untrusted=False,  # lines with untrusted text are marked
    )


def _search_filter(arguments: SearchMemoryArguments, zone: tzinfo) -> SearchFilter:
    since, until = arguments.since, arguments.until
    return SearchFilter(
        since=datetime.combine(since, time.min, zone).timestamp() if since else -inf,
        until=datetime.combine(until, time.max, zone).timestamp() if until else inf,
        speaker=_NUMBER.sub("", arguments.speaker),
    )


def _excerpt(message: Message, query: str) -> str:
    return relevant_excerpt(harmless(message.text), query, _EXCERPT_CHARS)
