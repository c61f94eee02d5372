"""Is `/inspect` on, and can its token be guessed."""

from bot.features.inspector.settings import InspectorSettings
from bot.probe import Probe, Row, Rows
from config.values import secret_of

_WHAT = "Inspector"
_MIN_TOKEN_CHARS = 20
_MIN_TOKEN_DISTINCT = 8


async def _inspector(settings: InspectorSettings) -> Rows:
    token = secret_of(settings.inspector_token)
    if token is None:
        advice = "with INSPECTOR_TOKEN (`openssl rand -hex 24`) one page shows the running bot"
        yield Row(_WHAT, "ok", "off: INSPECTOR_TOKEN is not set", advice)
    elif len(token) < _MIN_TOKEN_CHARS or len(set(token)) < _MIN_TOKEN_DISTINCT:
        advice = "set INSPECTOR_TOKEN to a long random text, such as `openssl rand -hex 24` prints"
        yield Row(_WHAT, "warn", "on at /inspect, with a token that can be guessed", advice)
    else:
        yield Row(_WHAT, "ok", "on at /inspect")


PROBES = (Probe(_WHAT, _inspector),)
