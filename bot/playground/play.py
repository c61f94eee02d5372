"""The playground: the unchanged bot between a page and a model, on a Valkey of its own.

Every port listens on 127.0.0.1, and the operator's Redis is never used. Without a key an offline
model answers, until somebody pastes one into the page: it is kept in memory only.
"""

import asyncio
import os
import sys
import webbrowser
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from secrets import token_urlsafe
from threading import Thread

from pydantic import SecretStr
from starlette.routing import Mount

from bot.app import App
from bot.model.call import ModelObserver
from bot.model.models import Models, OpenModels, open_models
from bot.playground.inspector import Inspector
from bot.playground.inspector_page import InspectorPage
from bot.playground.offline_memory import OfflineInternalModel, OfflineServer
from bot.playground.offline_model import OfflineChatModel
from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import ADMIN_ID, BOT, Scene
from bot.runtime.process import run_until_signal
from bot.runtime.web import WebServer
from config.settings import Settings
from memory.store.embedded import EmbeddedValkey
from memory.store.tasks import end_tasks

_WITHOUT_KEY = (
    "A playground on your machine. Without a key a small offline model answers: it only quotes "
    "what you said, but the memory is real."
)


def play(settings: Settings) -> None:
    """Serve the playground until told to stop; raise `EmbeddedError` or `PortUnavailable`."""
    embedded = EmbeddedValkey(settings.data_dir / "playground")
    redis = embedded.start()
    try:
        asyncio.run(run_until_signal(partial(_play, settings, redis)))
    finally:
        embedded.stop()


# The bot's health pages take any free port, because the playground's page has the operator's.
_IN_PLAYGROUND = {
    "webhook_url": None,
    "redis_url": None,
    "sentry_dsn": None,
    "port": 0,
    "admin_user_ids": frozenset({ADMIN_ID}),
    "allowed_user_ids": frozenset[int](),
    "access": "open",
    "allowed_group_ids": frozenset[int](),
}


async def _play(settings: Settings, redis: str, stopping: asyncio.Event) -> None:
    async with AsyncExitStack() as stack:
        with_model = f"A playground on your machine, answered by {settings.openai_model}."
        has_model = settings.openai_api_key or "openai_base_url" in settings.model_fields_set
        sounds = None if has_model else OfflineServer()
        # No Telegram knows this token. What is derived from it differs at each start.
        token = {"telegram_bot_token": SecretStr(f"{BOT.id}:{token_urlsafe(16)}")}
        model = settings.openai_model if has_model else "offline model"
        here = settings.model_copy(update=_IN_PLAYGROUND | token | {"openai_model": model})
        scene = Scene(settings.data_dir / "playground" / "scene.json")
        telegram = PageTelegram(scene)
        inspector = Inspector(telegram, scene)
        page = InspectorPage(inspector, with_model if has_model else _WITHOUT_KEY, sounds)
        server = WebServer([Mount("/", page.app())], settings.port, "127.0.0.1")
        await stack.enter_async_context(server.serving())
        stack.push_async_callback(page.stop)
        address = f"http://127.0.0.1:{server.port}/"
        sys.stdout.write(f"\n  Ricordo's playground: {address}  (Ctrl+C stops it)\n\n")
        sys.stdout.flush()
        if sys.stdout.isatty() and has_screen():
            open_browser(address)
        models: OpenModels = partial(offline_models, sounds, scene) if sounds else open_models
        observer, stop = inspector.observe, asyncio.create_task(stopping.wait())
        stop.add_done_callback(lambda _: page.has_key.set())
        stack.push_async_callback(end_tasks, [stop])
        while not stopping.is_set():
            page.has_key.clear()
            app = App(here, redis, models=models, telegram=telegram.open, observer=observer)
            await app.run(page.has_key)
            page.answered_by(with_model)
            pasted = {"openai_api_key": SecretStr(page.key), "openai_model": settings.openai_model}
            here = here.model_copy(update=pasted)
            models = open_models


def has_screen() -> bool:
    """Return whether a graphical browser can open: a text browser would take the terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(url: str) -> None:
    """Open a page without waiting: some browsers run until their window is closed."""
    Thread(target=webbrowser.open, args=(url,), daemon=True).start()


@asynccontextmanager
async def offline_models(
    sounds: OfflineServer, scene: Scene, _: Settings, __: Sequence[ModelObserver]
) -> AsyncIterator[Models]:
    """Give the models that answer without a key; they run in this process and cost nothing.

    Nothing here understands a text, so there are no vectors: the search goes by words.
    """
    chat = OfflineChatModel(writers=lambda: [person.name for person in scene.people])
    yield Models([chat], OfflineInternalModel(), None, (), sounds, hears=False)
