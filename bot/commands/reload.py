"""`/reload`: reads `.env` again, for operators."""

from collections.abc import Awaitable, Callable

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.telegram.updates import IncomingMessage
from config.reloading import Reloaded
from memory.store.keys import Scope

ReloadAll = Callable[[], Awaitable[Reloaded]]
"""Reloads the settings in all processes; says what changed in this one. Raises `StoreError`."""


async def cannot_reload() -> Reloaded:
    """Change nothing; used if no settings can be read again."""
    return Reloaded(nothing_to_read=True)


class ReloadCommand:
    """Says what changed in the process that answers; other processes reload within seconds."""

    def __init__(self, reload_all: ReloadAll, sentences: Sentences) -> None:
        self._reload_all = reload_all
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Answer the command."""
        reloaded = await self._reload_all()
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
