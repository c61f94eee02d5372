"""The setting of traces."""

from pydantic import Field

from config import values
from config.settings import Settings


class TraceSettings(Settings):
    """Traces, beside the settings of the core."""

    otel_exporter_otlp_endpoint: values.WebAddress | None = Field(
        default=None,
        description="OpenTelemetry collector (HTTP) that gets traces; not set: none are made",
    )


SETTINGS = TraceSettings
