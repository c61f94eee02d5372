"""The search service: does it answer a search. The bot also works without one."""

from bot.features.links.search_web import SearchFailed, SearchService
from bot.features.links.settings import LinksSettings
from bot.probe import Probe, Row, Rows
from config.values import secret_of

_WHAT = "Web search"
_REFUSALS = (401, 403, 422)


async def _web_search(settings: LinksSettings) -> Rows:
    """Yield one row; one search is made."""
    address, key = settings.search_url, secret_of(settings.search_api_key)
    if address is None or settings.web == "off":
        why = "WEB=off" if settings.web == "off" else "neither SEARCH_URL nor SEARCH_API_KEY is set"
        yield Row(_WHAT, "ok", f"off: {why}")
        return
    try:
        found = await SearchService(address, key).search("Telegram")
    except SearchFailed as failure:
        advice = "check SEARCH_URL; with SEARCH_API_KEY it is Brave's API, without it a SearXNG"
        if failure.status in _REFUSALS and key:
            advice = "check SEARCH_API_KEY"
        elif failure.status in _REFUSALS:
            advice = "allow json in search.formats of the settings.yml of this SearXNG"
        yield Row(_WHAT, "warn", str(failure), advice)
        return
    if not found:
        yield Row(_WHAT, "warn", "answers, but finds nothing", "look at its search engines")
        return
    yield Row(_WHAT, "ok", f"{'Brave' if key else 'SearXNG'} answers ({len(found)} results)")


PROBES = (Probe("Web search", _web_search),)
