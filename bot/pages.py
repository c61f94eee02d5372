"""The pages of the bot: health, metrics, and the inspector if it is on."""

from starlette.routing import BaseRoute

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.live.live_state import LiveReader
from bot.live.live_turns import LiveTurns
from bot.live.looked_at import LookReader
from bot.live.sign_in import SignIn
from bot.metrics.metrics import Metrics
from bot.metrics.page import metrics_route
from bot.model.models import secret_of
from bot.runtime.web import health_routes
from bot.telegram.connection import TelegramHealth
from config.settings import Settings
from memory.memory import Memory


def page_routes(
    settings: Settings,
    memory: Memory,
    health: TelegramHealth,
    metrics: Metrics,
    live: LiveTurns,
) -> list[BaseRoute]:
    """Return the routes; without `INSPECTOR_TOKEN` there is no inspector."""
    routes = health_routes(
        memory.client,
        health,
        has_webhook=settings.webhook_url is not None,
        wait_replicas=settings.intake_wait_replicas,
    )
    token, on_platform = secret_of(settings.metrics_token), settings.platform is not None
    routes.append(metrics_route(metrics, memory, token, on_platform=on_platform))
    if inspector_token := secret_of(settings.inspector_token):
        from bot.live.live_page import LivePage  # noqa: PLC0415 - its templates take long to load

        sign_in = SignIn(inspector_token, secret_of(settings.telegram_bot_token) or "")
        reader = LiveReader(settings, memory, live.names)
        looks = LookReader(memory, Sentences(Catalogue(), settings.timezone))
        routes += LivePage(reader, looks, sign_in).routes()
    return routes
