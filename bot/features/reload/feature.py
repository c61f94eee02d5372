"""Reads the settings again at SIGHUP or `/reload`; the latter reaches all processes of the bot."""

import asyncio
import os
import signal
from contextlib import suppress

import structlog

from bot.commands.bot_command import Answer, BotCommand
from bot.feature import Feature, Services
from bot.prompt.assemble import UnusableSystemPrompt
from bot.runtime.maintenance import repeat
from bot.telegram.updates import IncomingMessage
from config.loading import Reloaded, SettingsError, reload_settings
from config.settings import Settings
from memory.store.keys import Scope
from memory.store.store import RELOADS

log = structlog.get_logger(__name__)

_LOOK_EVERY_S = 15.0
_PROMPT = "SYSTEM_PROMPT_FILE"


def feature(services: Services) -> Feature:
    """Return the feature."""
    reloading = Reloading(services)
    return Feature(name="reload", commands=[reloading.command], tasks=[reloading.run])


class Reloading:
    """Reloads the settings of this process, and has the others reload theirs.

    One counter in Redis says how often an operator asked. A note tells each process to look.
    """

    def __init__(self, services: Services) -> None:
        self.command = BotCommand("reload", self._answer, "operators")
        self._settings = services.settings
        self._sentences = services.sentences
        self._store, self._client = services.memory.store, services.memory.client
        self._noted = services.memory.scopes.noted[RELOADS]
        self._key = services.memory.keys.reloads
        self._prompts = services.system_prompts
        self._env_file = services.env_file
        self._seen: int | None = None

    async def run(self) -> None:
        """Reload at SIGHUP, and when the counter has grown, until cancelled."""
        loop, has_terminal = asyncio.get_running_loop(), os.isatty(0)

        def hung_up() -> None:
            if has_terminal and not os.isatty(0):
                signal.raise_signal(signal.SIGTERM)  # the terminal was closed
            else:
                self._reload()

        with suppress(NotImplementedError, AttributeError):  # Windows has no SIGHUP
            loop.add_signal_handler(signal.SIGHUP, hung_up)
        await repeat(self._look, "reload", _LOOK_EVERY_S, self._noted)

    async def _answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Reload here, have the other processes do so, and say what changed; raise `StoreError`."""
        self._seen = await self._client.call("INCR", self._key)
        await self._store.note(RELOADS)
        reloaded = self._reload()
        keys = ["reload.done" if reloaded.changed else "reload.unchanged"]
        if reloaded.nothing_to_read:
            keys = ["reload.nothing"]
        elif reloaded.refusal:
            keys = ["reload.refused"]
        elif reloaded.waiting:
            keys.append("reload.waiting")
        return Answer(
            self._sentences.say(
                asked.sender.language,
                *keys,
                changed=", ".join(reloaded.changed),
                waiting=", ".join(reloaded.waiting),
                reason=reloaded.refusal,
            )
        )

    async def _look(self) -> None:
        asked = int(await self._client.call("GET", self._key) or 0)
        is_new, self._seen = self._seen not in (None, asked), asked
        if is_new:
            self._reload()

    def _reload(self) -> Reloaded:
        is_other_prompt = False

        def prepare(new: Settings) -> None:
            nonlocal is_other_prompt
            try:
                # The first one is the largest: if it takes the prompt, the others do.
                is_other_prompt, *_ = [use(new.system_prompt_file) for use in self._prompts]
            except UnusableSystemPrompt as error:
                raise SettingsError(str(error)) from error

        reloaded = reload_settings(self._settings, self._env_file, prepare)
        if is_other_prompt and _PROMPT not in reloaded.changed:
            reloaded = Reloaded((*reloaded.changed, _PROMPT), reloaded.waiting)
        if reloaded.refusal:
            log.warning("reload refused", reason=reloaded.refusal)
        else:
            log.warning("reloaded", changed=reloaded.changed, need_restart=reloaded.waiting)
        return reloaded
