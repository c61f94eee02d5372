"""The search service: does it answer a search. The bot also works without one."""

from bot.features.links.search_web import SearchFailed, SearchService
from bot.features.links.settings import LinksSettings
from bot.probe import Probe, Row, Rows
from config.values import secret_of

_WHAT = "Web search"
_REFUSALS = (401, 403, 422)


async def _web_search(settings: LinksSettings) -> Rows:
    """Yield one row; one search is made."""
    search = secret_of(settings.search)
    if search is None or settings.web == "off":
        why = "WEB=off" if settings.web == "off" else "SEARCH is not set"
        yield Row(_WHAT, "ok", f"off: {why}")
        return
    service = SearchService(search)
    try:
        found = await service.search("Telegram")
    except SearchFailed as failure:
        advice = "check SEARCH: the address of a SearXNG, or a key of Brave's web search API"
        if failure.status in _REFUSALS and service.name == "SearXNG":
            advice = "allow json in search.formats of the settings.yml of this SearXNG"
        yield Row(_WHAT, "warn", str(failure), advice)
        return
    if not found:
        yield Row(_WHAT, "warn", "answers, but finds nothing", "look at its search engines")
        return
    yield Row(_WHAT, "ok", f"{service.name} answers ({len(found)} results)")


PROBES = (Probe("Web search", _web_search),)
