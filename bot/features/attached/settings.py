"""The setting of behaviors that people attach themselves."""

from pydantic import Field

from config import values
from config.settings import Settings


class AttachedSettings(Settings):
    """Behaviors to attach, beside the settings of the core."""

    attachable_behaviors: values.FeaturePaths = Field(
        default=(),
        description="Your own memory behaviors that run only where a person turns them on with "
        "`/behaviors`, as `package.module:Class`",
    )


SETTINGS = AttachedSettings
