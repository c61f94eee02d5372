"""What links add to the bot."""

from typing import Any

from bot.feature import Feature, Services
from bot.features.links.page_fetch import PageFetcher
from bot.features.links.read_page import read_page_tool
from bot.features.links.search_web import SearchService, search_web_tool
from bot.features.links.settings import LinksSettings
from bot.model.models import secret_of
from memory.behaviors.tool import Tool


def feature(services: Services) -> Feature:
    """Return the feature."""
    settings = services.own(LinksSettings)
    tools: list[Tool[Any]] = [read_page_tool(PageFetcher())]
    if settings.search_url is not None:
        key = secret_of(settings.search_api_key)
        tools.append(search_web_tool(SearchService(settings.search_url, key)))
    return Feature(name="links", tools=tools, ways=["way_link"])
