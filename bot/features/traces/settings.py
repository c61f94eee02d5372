"""The settings of traces and error reports."""

from config import values
from config.settings import Settings


class TraceSettings(Settings):
    """Both, beside the settings of the core."""

    otel_exporter_otlp_endpoint: values.WebAddress | None = values.setting(
        None, "OpenTelemetry collector (HTTP) that gets traces; not set: none are made"
    )
    sentry_dsn: values.SentryDsn | None = values.setting(
        None, "Sentry project that gets unexpected errors, without any text; not set: none"
    )


SETTINGS = TraceSettings
