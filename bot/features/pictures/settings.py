"""The setting of pictures."""

from typing import Annotated, Literal

from config import values
from config.settings import Settings


class PictureSettings(Settings):
    """Pictures, beside the settings of the core."""

    image_detail: Annotated[Literal["auto", "low", "high", "off"], values.AnyCase] = values.setting(
        "low", "How closely the model looks at photos; more takes more tokens; `off`: it sees none"
    )


SETTINGS = PictureSettings
