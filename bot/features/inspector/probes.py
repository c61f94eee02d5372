"""Is `/inspect` on, and can its token be guessed."""

from bot.features.inspector.settings import InspectorSettings
from bot.probe import Probe, Row, Rows
from config.values import secret_of

_WHAT = "Inspector"
_MIN_TOKEN_CHARS = 20
_MIN_TOKEN_DISTINCT = 8


def _row(settings: InspectorSettings) -> Row:
    token = secret_of(settings.inspector_token)
    if token is None:
        advice = "with INSPECTOR_TOKEN (`openssl rand -hex 24`) one page shows the running bot"
        return Row(_WHAT, "ok", "off: INSPECTOR_TOKEN is not set", advice)
    if len(token) < _MIN_TOKEN_CHARS or len(set(token)) < _MIN_TOKEN_DISTINCT:
        advice = "set INSPECTOR_TOKEN to a long random text, such as `openssl rand -hex 24` prints"
        return Row(_WHAT, "warn", "on at /inspect, with a token that can be guessed", advice)
    return Row(_WHAT, "ok", "on at /inspect")


async def _inspector(settings: InspectorSettings) -> Rows:
    yield _row(settings)


PROBES = (Probe(_WHAT, _inspector),)
