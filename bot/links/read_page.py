"""`read_page`: reads a page of the web for the model. What a page says is untrusted."""

from pathlib import Path

from pydantic import Field

from bot.documents.isolated import ParserFailed, parse
from bot.links.page_fetch import Page, PageFetcher, PageRefused
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError
from memory.behaviors.trust import holds_untrusted

_PARSER = Path(__file__).with_name("page_text.py")
_MAX_CHARS = 40_000
_PARSER_S = 8
_PARSER_CPU_S = 5
_PARSER_MB = 320


class ReadPageArguments(Arguments):
    """The address of the page."""

    url: str = Field(min_length=1, max_length=2_000)


def read_page_tool(fetcher: PageFetcher) -> Tool[ReadPageArguments]:
    """Return the tool."""

    async def run(arguments: ReadPageArguments, context: AgentContext) -> str:
        _check_source(arguments.url, context)
        try:
            page = await fetcher.fetch(arguments.url)
        except PageRefused as refusal:
            raise ToolError(str(refusal)) from refusal
        title, text = await _text(page)
        if not text.strip():
            raise ToolError("the page has no text")
        return "\n".join(filter(None, (f"Page {page.address}", title, "", text)))

    return Tool(
        "read_page",
        "Read a public web page whose address you know or were given.",
        ReadPageArguments,
        run,
        uses_memory=False,
    )


def _check_source(url: str, context: AgentContext) -> None:
    """Raise `ToolError` for an address that untrusted text may have told the model to make up.

    Such an address could carry words of the conversation away. So if the prompt holds untrusted
    text, the address must stand as it is in what people wrote, in memory, or in a tool's result.
    An error of a tool does not count, because it may quote what the model itself wrote in the call.
    """
    if not holds_untrusted(context):
        return
    written = (message.text for message in context.window if message.role == "user")
    results = (
        result.text
        for step in context.completed_steps
        for result in step.results
        if not result.failed
    )
    texts = (context.user_message.text, context.memory_context, *written, *results)
    if not any(url in text for text in texts):
        raise ToolError(
            "text of others was read, so only an address can be read that stands unchanged in the "
            "person's messages or in a page; ask the person for the address"
        )


async def _text(page: Page) -> tuple[str, str]:
    """Return title and text of a page; raise `ToolError`."""
    if "html" not in page.mime_type:
        return "", page.content.decode("utf-8", "replace")[:_MAX_CHARS]
    limits = (_MAX_CHARS, _PARSER_MB, _PARSER_CPU_S)
    try:
        answer = await parse(_PARSER, limits, page.content, _PARSER_S)
    except ParserFailed:
        raise ToolError("the page cannot be read") from None
    if "refused" in answer:
        raise ToolError("the page cannot be read")
    return answer["title"], answer["text"]
