"""`search_memory`: the tool that searches this conversation a second time."""

import re
from collections.abc import Sequence
from datetime import date, datetime, time
from math import inf

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from bot.prompt.memory_context import RecallPacker, with_dates
from bot.prompt.sections import codes_of
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool
from memory.search.message_search import SearchFilter
from memory.search.question import as_question
from memory.text.tokens import TokenCounter

_MAX_TOKENS = 1_000
_NUMBER = re.compile(r" \(\d{1,6}\)\Z")
"""A number after a name that several people of a group have. The stored name has no number."""

_FURTHER = (
    "(To look further: other words, `since` and `until` for a time, `speaker` for one person, or "
    "`like` with a number from above for more like that message.)"
)


class SearchMemoryArguments(Arguments):
    """Query, kind, first and last day, speaker, a message to resemble, and number of results.

    With a `kind` the messages that facts of it were learned from come first. The model is not told
    of `k`: the tokens of the output are the tighter limit.
    """

    query: str = Field(description="The words probably used", min_length=1, max_length=500)
    kind: str = Field(default="", description="All of a kind: restaurant", max_length=64)
    since: date | None = None
    until: date | None = None
    speaker: str = Field(default="", description="Who said it; `assistant` is you", max_length=64)
    like: int | None = Field(default=None, description="More like the message #12: 12")
    k: SkipJsonSchema[int] = Field(default=20, ge=1, le=40)


def search_memory_tool(
    counter: TokenCounter, behaviors: Sequence[AIContextBehavior] = ()
) -> Tool[SearchMemoryArguments]:
    """Return the tool.

    What `behaviors` that search (`on_search`) find comes below the messages.
    """
    finds_nothing = AIContextBehavior.on_search
    searching = [each for each in behaviors if type(each).on_search is not finds_nothing]
    packer = RecallPacker(counter, is_numbered=True)

    async def run(arguments: SearchMemoryArguments, context: AgentContext) -> str:
        history, text = context.chat_history, arguments.query
        if arguments.like is not None:
            await history.fill()
            alike = (each.text for each in history.messages if each.seq == arguments.like)
            text = next(alike, text)
        text = as_question(text)
        known = () if arguments.like is None else (arguments.like,)
        since, until, zone = arguments.since, arguments.until, context.call_context.zone
        search_filter = SearchFilter(
            since=datetime.combine(since, time.min, zone).timestamp() if since else -inf,
            until=datetime.combine(until, time.max, zone).timestamp() if until else inf,
            speaker=_NUMBER.sub("", arguments.speaker),
        )
        hits = await history.search(text, arguments.k, exclude=known, search_filter=search_filter)
        if context.uses_memory:
            if arguments.kind:
                of_kind = await history.of_kind(arguments.kind, arguments.k, search_filter)
                hits = [*of_kind, *hits]
            hits = await history.with_facts(hits)
        lines = with_dates(packer.ranked(context, hits, text, _MAX_TOKENS, known))
        further: list[str] = []
        codes = [*codes_of(hits, lines)]
        for each in searching if context.uses_memory else ():
            found = await each.on_search(
                context.call_context, text, arguments.k, _MAX_TOKENS // 2, search_filter
            )
            if found:
                further += [each.search_heading, *found.values()]
                codes += found
        if not lines and not further:
            return "Nothing was found about this in earlier messages."
        context.call_context.used.update(dict.fromkeys(codes, ""))
        return "\n".join((*lines.values(), *further, _FURTHER))

    return Tool(
        "search_memory",
        "Search everything ever said here, for what neither recent messages nor <memory> hold.",
        SearchMemoryArguments,
        run,
        is_untrusted=False,  # lines with untrusted text are marked
        is_reader=True,
    )
