"""`search_memory`: lets the model search earlier messages of this conversation."""

import re
from datetime import date, datetime, time, tzinfo
from math import inf

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from bot.prompt.recalled import RecallPacker
from bot.prompt.sections import codes_of
from memory.behaviors.context import AgentContext
from memory.behaviors.other_topics import HEADING, OtherTopics
from memory.behaviors.tool import Arguments, Tool
from memory.search.message_search import SearchFilter
from memory.text.tokens import TokenCounter

_MAX_TOKENS = 1_000
_NUMBER = re.compile(r" \(\d{1,6}\)\Z")
"""A number after a name that several people of a group have. The stored name has no number."""

_FURTHER = (
    "(To look further: other words, `since` and `until` for a time, `speaker` for one person, or "
    "`like` with a number from above for more like that message.)"
)


class SearchMemoryArguments(Arguments):
    """Query, first and last day, speaker, a message to resemble, and number of results.

    The model is not told of `k`: the tokens of the output are the tighter limit.
    """

    query: str = Field(
        description="The words probably used",
        min_length=1,
        max_length=500,
    )
    since: date | None = None
    until: date | None = None
    speaker: str = Field(
        default="",
        description="Who said it; `assistant` is you",
        max_length=64,
    )
    like: int | None = Field(default=None, description="More like the message #12: 12")
    k: SkipJsonSchema[int] = Field(default=20, ge=1, le=40)


def search_memory_tool(
    zone: tzinfo, counter: TokenCounter, topics: OtherTopics | None = None
) -> Tool[SearchMemoryArguments]:
    """Return the tool; `zone` is the time zone of days and of the dates in results.

    If the person wants that, it searches the other `topics` of a private chat as well.
    """
    packer = RecallPacker(counter, zone, is_numbered=True)

    async def run(arguments: SearchMemoryArguments, context: AgentContext) -> str:
        history, text = context.chat_history, arguments.query
        if arguments.like is not None:
            await history.fill()
            alike = (each.text for each in history.messages if each.seq == arguments.like)
            text = next(alike, text)
        known = () if arguments.like is None else (arguments.like,)
        search_filter = _search_filter(arguments, zone)
        results = await history.search(
            text, arguments.k, exclude=known, search_filter=search_filter
        )
        lines = packer.pack(context, results, text, _MAX_TOKENS, known)
        further: dict[str, str] = {}
        if topics and context.call_context and not context.is_off_record:
            further = await topics.recall(
                context.call_context, text, arguments.k, _MAX_TOKENS // 2, search_filter
            )
        if not lines and not further:
            return "Nothing was found about this in earlier messages."
        if context.call_context:
            codes = (*codes_of(results, lines), *further)
            context.call_context.used.update(dict.fromkeys(codes, ""))
        headed = (HEADING, *further.values()) if further else ()
        return "\n".join((*lines.values(), *headed, _FURTHER))

    return Tool(
        "search_memory",
        "Search everything ever said here, for what neither recent messages nor <memory> hold.",
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
