"""The setting of drafts."""

from typing import Annotated, Literal

from config import values
from config.settings import Settings


class DraftSettings(Settings):
    """Drafts, beside the settings of the core."""

    stream: Annotated[Literal["drafts", "off"], values.AnyCase] = values.setting(
        "drafts", 'In private chats show a reply while it is written; `off`: only "typing"'
    )


SETTINGS = DraftSettings
