"""The setting of metrics."""

from config import values
from config.settings import Settings


class MetricsSettings(Settings):
    """Metrics, beside the settings of the core."""

    metrics_token: values.Secret | None = values.setting(
        None,
        "Bearer token of `/metrics`; not set: only this machine may read it, on a platform nobody",
    )


SETTINGS = MetricsSettings
