"""The setting of hints."""

from typing import Annotated, Literal

from config import values
from config.settings import Settings


class HintsSettings(Settings):
    """Whether people are told what they have not found, beside the settings of the core."""

    hints: Annotated[Literal["on", "off"], values.AnyCase] = values.setting(
        "on", "`off`: no tips below answers in private chats"
    )


SETTINGS = HintsSettings
