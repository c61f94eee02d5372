"""`search_web`: asks the operator's search service. What it finds is untrusted.

The operator named the service's address, so it may be a private one. No redirect is followed.
"""

import asyncio
import html
import re

import httpx2
from pydantic import Field

from bot.features.links.page_fetch import PageRefused, body_of
from bot.http_client import MAX_VALUES, HttpClient, read_json, trusted
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError

BRAVE = "https://api.search.brave.com/res/v1/web/search"
_TIMEOUT_S = 10
_MAX_RESULTS, _MAX_TRIED = 8, 100
_MAX_QUERY_CHARS = 400
_MAX_QUERY_WORDS = 50  # Brave refuses longer questions
_MAX_TITLE_CHARS = 160
_ADDRESS = re.compile(r"https?://\S{1,490}")
_MAX_TEXT_CHARS = 400
_READ_FACTOR = 4  # so much more of a text is read, because tags are taken out of it
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,100}>")
_STATUSES = {
    401: "the search service does not take its key",
    403: "the search service does not allow this",
    422: "the search service does not take its key",  # Brave, for a wrong one
    429: "the search service was asked too often; try later, or do without",
}


class SearchFailed(ToolError):
    """Raised if nothing was searched; `status` is 0 if unknown."""

    def __init__(self, reason: str, status: int = 0) -> None:
        super().__init__(reason)
        self.status = status


class SearchService:
    """The search service that `SEARCH` names: a SearXNG by its address, or Brave by a key."""

    def __init__(self, named: str) -> None:
        self.name, self._address = "Brave", BRAVE
        self._headers = {"Accept": "application/json", "Accept-Encoding": "gzip, identity"}
        if "://" in named:
            base = named.rstrip("/").removesuffix("/search")
            self.name, self._address = "SearXNG", f"{base}/search"
            self._parameters = {"format": "json"}
        else:
            self._parameters = {"count": str(_MAX_RESULTS)}
            self._headers["X-Subscription-Token"] = named

    async def search(self, query: str) -> list[str]:
        """Return results, best first: title, address, mostly a text; raise `SearchFailed`."""
        words = " ".join(query.split()[:_MAX_QUERY_WORDS])[:_MAX_QUERY_CHARS]
        try:
            async with asyncio.timeout(_TIMEOUT_S):
                answer = read_json(await self._answer(words), MAX_VALUES)
        except (TimeoutError, httpx2.TimeoutException):
            raise SearchFailed("the search service took too long") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError, UnicodeError):
            raise SearchFailed("the search service cannot be reached") from None
        except (ValueError, RecursionError):
            raise SearchFailed("the search service did not answer with JSON") from None
        except PageRefused:
            raise SearchFailed("the answer of the search service cannot be read") from None
        return _results(answer)

    async def _answer(self, query: str) -> bytes:
        """Return the body of the answer; raise `SearchFailed` for a status without results."""
        parameters = {"q": query, **self._parameters}
        async with (
            HttpClient(verify=trusted(), timeout=_TIMEOUT_S) as client,
            client.stream("GET", self._address, params=parameters, headers=self._headers) as answer,
        ):
            status = answer.status_code
            if answer.is_redirect:
                raise SearchFailed("the search service redirects", status)
            if not answer.is_success:
                reason = f"the search service answers with status {status}"
                raise SearchFailed(_STATUSES.get(status, reason), status)
            return await body_of(answer)


class SearchWebArguments(Arguments):
    """What to search for."""

    query: str = Field(description="Words to search for", min_length=1, max_length=1_000)


def search_web_tool(service: SearchService) -> Tool[SearchWebArguments]:
    """Return the tool."""

    async def run(arguments: SearchWebArguments, _: AgentContext) -> str:
        found = await service.search(arguments.query)
        numbered = (f"{number}. {result}" for number, result in enumerate(found, start=1))
        return "\n\n".join(numbered) or "Nothing was found."

    return Tool(
        "search_web",
        "Search the web for what you do not know or what may have changed; `read_page` then reads "
        "a result.",
        SearchWebArguments,
        run,
        is_reader=True,
        uses_memory=False,
    )


def _results(answer: object) -> list[str]:
    """Return the usable results of an answer; raise `SearchFailed` for JSON of another kind."""
    if isinstance(answer, dict) and answer.get("type") == "search":  # Brave's
        answer = answer.get("web", {"results": []})
    results = answer.get("results") if isinstance(answer, dict) else None
    if not isinstance(results, list):
        raise SearchFailed("the search service answered with something else than results")
    found = []
    for result in results[:_MAX_TRIED]:
        match result:
            case {"url": str(address)} if _ADDRESS.fullmatch(address):
                title = _plain(result.get("title"), _MAX_TITLE_CHARS)
                text = _plain(result.get("content") or result.get("description"), _MAX_TEXT_CHARS)
                found.append("\n".join(filter(None, (title or address, address, text))))
        if len(found) == _MAX_RESULTS:
            break
    return found


def _plain(text: object, max_chars: int) -> str:
    if not isinstance(text, str):
        return ""
    plain = " ".join(html.unescape(_TAG.sub("", text[: max_chars * _READ_FACTOR])).split())
    return plain if len(plain) <= max_chars else plain[: max_chars - 1].rstrip() + "…"
