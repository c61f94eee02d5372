"""The setting of metrics."""

from pydantic import Field

from config import values
from config.settings import Settings


class MetricsSettings(Settings):
    """Metrics, beside the settings of the core."""

    metrics_token: values.Secret | None = Field(
        default=None,
        description="Bearer token of `/metrics`; not set: only this machine may read it, on a "
        "platform nobody",
    )


SETTINGS = MetricsSettings
