"""The setting of the inspector."""

from config import values
from config.settings import Settings


class InspectorSettings(Settings):
    """The inspector, beside the settings of the core."""

    inspector_token: values.Secret | None = values.setting(
        None, "Secret that opens `/inspect`, the page about the running bot; not set: off"
    )


SETTINGS = InspectorSettings
