"""The settings of pages and searches of the web."""

from typing import Annotated, Literal

from pydantic import Field

from config import values
from config.settings import Settings

_BRAVE = "https://api.search.brave.com/res/v1/web/search"


class LinksSettings(Settings):
    """The web, beside the settings of the core."""

    web: Annotated[Literal["off", "read"], values.AnyCase] = Field(
        default="read", description="Whether the model may read public web pages (`read`)"
    )
    search_api_key: values.Secret | None = Field(
        default=None, description="Key of Brave's web search API; not set: `SEARCH_URL` needs none"
    )
    search_url: values.WebAddress | None = Field(
        default_factory=lambda chosen: _BRAVE if chosen["search_api_key"] else None,
        description="Search service for the model, if `WEB=read`: a SearXNG, or with "
        "`SEARCH_API_KEY` Brave's API; not set: Brave if there is a key, else none",
    )


SETTINGS = LinksSettings
