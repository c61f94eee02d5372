"""The setting of drafts."""

from typing import Annotated, Literal

from pydantic import Field

from config import values
from config.settings import Settings


class DraftSettings(Settings):
    """Drafts, beside the settings of the core."""

    stream: Annotated[Literal["drafts", "off"], values.AnyCase] = Field(
        default="drafts",
        description='In private chats show a reply while it is written; `off`: only "typing"',
    )


SETTINGS = DraftSettings
