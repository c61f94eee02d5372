"""The settings of pages and searches of the web."""

import re
from typing import Annotated, Literal

from pydantic import SecretStr

from config import values
from config.settings import Settings

_SERVICE = re.compile(
    r"(?i)https?://(\[[0-9a-f:.]+\]|[^\s/@:\[\]]+)(:\d{1,5})?(/\S*)?|[a-z0-9_-]{20,}"
)


class LinksSettings(Settings):
    """The web, beside the settings of the core."""

    web: Annotated[Literal["off", "read"], values.AnyCase] = values.setting(
        "read", "Whether the model may read public web pages (`read`)"
    )
    search: (
        Annotated[
            SecretStr,
            values.matching(_SERVICE),
            values.Allowed("the address of a SearXNG (`https://…`), or a key of Brave's API"),
        ]
        | None
    ) = values.setting(None, "Search service for the model, if `WEB=read`; not set: none")


SETTINGS = LinksSettings
