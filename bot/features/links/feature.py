"""What links add to the bot: `read_page` reads a page of the web. What a page says is untrusted."""

import asyncio
import re
import unicodedata
from collections.abc import Iterator
from itertools import dropwhile, islice, takewhile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from pydantic import Field

from bot.feature import Feature, Services
from bot.features.links.page_fetch import PageFetcher
from bot.features.links.search_web import SearchService, search_web_tool
from bot.features.links.settings import LinksSettings
from bot.parsing.answers import NotRead
from bot.parsing.processes import Parser, parse
from config.values import secret_of
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import DOCUMENTS_HEADING, Arguments, Tool, ToolError, holds_untrusted

_PARSER = Parser(Path(__file__).with_name("page_text.py"), 2 * 2**20 + 64, 2**19, cpu_s=5)
_MAX_CHARS = 40_000
_ADDRESS = re.compile(r"""https?://[^\s"<>`“”„«»\[\]{}|\\^]{1,2000}""", re.IGNORECASE)
_MARKS = ".,;:!?'*_~…。、，；：！？"
_READER, _SEARCH = "read_page", "search_web"


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings = services.own(LinksSettings)
    tools: list[Tool[Any]] = [read_page_tool(PageFetcher())]
    if search := secret_of(settings.search):
        tools.append(search_web_tool(SearchService(search)))
    return Feature(name="links", tools=tools, ways=["way_link"])


class ReadPageArguments(Arguments):
    """The address of the page."""

    url: str = Field(min_length=1, max_length=2_000)


def read_page_tool(fetcher: PageFetcher) -> Tool[ReadPageArguments]:
    """Return the tool; for one person it parses one page at a time, because others wait, too."""
    parsing = WeakValueDictionary[int | str, asyncio.Lock]()

    async def run(arguments: ReadPageArguments, context: AgentContext) -> str:
        _check_source(arguments.url, context)
        page = await fetcher.fetch(arguments.url)
        if "html" in page.mime_type:
            speaker = context.call_context.speaker.id or context.conversation.tag
            own = parsing.setdefault(speaker, asyncio.Lock())
            try:
                async with own:
                    answer = await parse(_PARSER, page.content, _MAX_CHARS)
            except NotRead:
                raise ToolError("the page cannot be read") from None
            title, text = answer["title"], answer["text"]
        else:
            title, text = "", page.content.decode("utf-8", "replace")[:_MAX_CHARS]
        if not text.strip():
            raise ToolError("the page has no text")
        return "\n".join(filter(None, (f"Page {page.address}", title, "", text)))

    return Tool(
        _READER,
        "Read a public web page whose address you know or were given.",
        ReadPageArguments,
        run,
        is_reader=True,
        uses_memory=False,
    )


class SitesRead(dict[str, str]):
    """By site, the address that was read after untrusted text; "" stands for other sites."""


def _check_source(url: str, context: AgentContext) -> None:
    """Raise `ToolError` for an address that untrusted text may have told the model to make up.

    Such an address could carry words of the conversation away. So if the prompt holds untrusted
    text, the whole address must stand in what people wrote, in a page or in results of a search; no
    words of the model count. A list of addresses could still serve as a code. So only one address
    may be read in a turn, and one of each site that a search found, except those that the person
    wrote in this message.
    """
    if not holds_untrusted(context):
        return
    own = (part for part in context.user_messages or (context.user_message,) if part.is_first_party)
    if any(url in _addresses(part.text) for part in own):
        return
    if any(url in _addresses(text) for text in _results(_SEARCH, context)):
        of = _site(url)
    elif any(url in _addresses(text) for text in (*_written(context), *_results(_READER, context))):
        of = ""
    else:
        raise ToolError(
            "text of others was read, so only an address can be read that stands unchanged in the "
            "person's messages, in a page or in results of search_web; ask the person for the "
            "address"
        )
    if context.part(SitesRead).setdefault(of, url) != url:
        raise ToolError(
            "text of others was read, so one page can be read for an answer, and one of each site "
            "that search_web found; answer with what you have, or ask the person for the address"
        )


def _written(context: AgentContext) -> Iterator[str]:
    """Yield what people wrote: their messages in the prompt, and passages of their documents."""
    background = context.background
    shown = (*background.window, *background.recalled_messages(), *background.replied_to())
    yield from (each.text for each in (context.user_message, *shown) if each.role == "user")
    # Only a whole line is the heading: another one, such as a synopsis, may end with its words.
    lines = dropwhile(DOCUMENTS_HEADING.__ne__, background.memory_context.splitlines())
    yield from takewhile(lambda line: line.startswith(("[", "  ")), islice(lines, 1, None))


def _results(tool: str, context: AgentContext) -> Iterator[str]:
    for step in context.completed_steps:
        for call, result in zip(step.action.calls, step.results, strict=True):
            if call.name == tool and not result.failed:
                yield result.text.replace("\\/", "/")  # as JSON has it


def _addresses(text: str) -> set[str]:
    """Return the addresses in a text, each with and without the marks that follow it.

    They are whole: a part of an address is none, or each length of one would be a code.
    """
    found: set[str] = set()
    for address in _ADDRESS.findall(text):
        plain = bare = address.rstrip(_MARKS)
        surplus = bare.count(")") - bare.count("(")
        while surplus > 0 and bare.endswith(")"):
            bare, surplus = bare[:-1].rstrip(_MARKS), surplus - 1
        found |= {address, plain, bare}
    return found


def _site(url: str) -> str:
    """Return the domain that somebody has registered, roughly; all IP addresses are one site."""
    host = unicodedata.normalize("NFKC", urlsplit(url).hostname or "").replace("。", ".")
    labels = host.rstrip(".").split(".")
    if not labels[-1][:1].isalpha():
        return "an IP address"
    is_by_country = len(labels) > 2 and len(labels[-1]) == 2 and len(labels[-2]) <= 3
    return ".".join(labels[-3 if is_by_country else -2 :])
