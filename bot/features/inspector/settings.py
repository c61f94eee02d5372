"""The setting of the inspector."""

from pydantic import Field

from config import values
from config.settings import Settings


class InspectorSettings(Settings):
    """The inspector, beside the settings of the core."""

    inspector_token: values.Secret | None = Field(
        default=None,
        description="Secret that opens `/inspect`, the page about the running bot; not set: off",
    )


SETTINGS = InspectorSettings
