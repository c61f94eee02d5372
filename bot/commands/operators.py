"""`/stats`, `/inspect` (counts and times, never content) and `/reload`, for operators."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.erasing import is_number
from bot.commands.notices import figures
from bot.commands.sentences import Sentences
from bot.model.circuit_breaker import CircuitBreaker
from bot.reply.render import render
from bot.telegram.updates import IncomingMessage
from config.loading import Reloaded
from memory.limits.stats import busiest_conversations, count_all, count_conversation
from memory.memory import Memory
from memory.store.keys import Scope

_LISTED = 10


@dataclass(frozen=True, slots=True)
class ModelsInUse:
    """The models that answer; `second` is "" if there is none, `breaker` is the first's."""

    first: str
    second: str
    breaker: CircuitBreaker

    @property
    def key(self) -> str:
        """Return the key of the sentence that says which one answers."""
        if not self.second:
            return "admin.model"
        return "admin.model_rests" if self.breaker.is_open else "admin.model_and_second"


class StatsCommands:
    """Counts what the bot stores, in all and of one chat."""

    def __init__(
        self,
        memory: Memory,
        models: ModelsInUse,
        sentences: Sentences,
        name_of: Callable[[Scope], str],
    ) -> None:
        self._client = memory.client
        self._keys = memory.keys
        self._mailbox = memory.mailbox
        self._capacity = memory.capacity
        self._models = models
        self._sentences = sentences
        self._name_of = name_of
        self._started_at = time.time()
        self.commands = (
            BotCommand("stats", self.stats, "operators"),
            BotCommand("inspect", self.inspect, "operators", takes=ANYTHING),
        )

    async def stats(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say how much the bot stores, and how full Redis is if its size is known."""
        stats = await count_all(self._client, self._keys)
        fill_level = await self._capacity.fill_level()
        minutes = int((time.time() - self._started_at) // 60)
        hours = f"{minutes // 60} h {minutes % 60} min"
        keys = ["admin.stats", self._models.key] + ["admin.plan"] * (fill_level.limit > 0)
        return self._say(
            asked,
            *keys,
            model=self._models.first,
            second=self._models.second,
            conversations=stats.conversations,
            active_day=stats.active_last_day,
            waiting=max(0, stats.wake_ups - 1),  # the other one is that of this command
            redis_mb=round(stats.redis_bytes / 2**20, 1),
            uptime=f"{minutes // 1440} d {minutes // 60 % 24} h" if minutes >= 1440 else hours,
            **figures(fill_level),
        )

    async def inspect(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say counts and times of one chat; without a chat, which ones are the busiest."""
        if not asked.text.strip():
            return await self._busiest(asked)
        if not is_number(asked.text.strip()):
            return self._say(asked, "admin.inspect_usage")
        conversation = await self._mailbox.resolve(Scope.of_chat(int(asked.text)))
        stats = await count_conversation(self._client, self._keys, conversation)
        if not (stats.messages or stats.waiting or stats.epoch):
            return self._say(asked, "admin.nothing_there")
        return self._say(
            asked,
            "admin.inspect",
            name=self._name_of(conversation),
            messages=stats.messages,
            vectors=stats.vectors,
            first=self._sentences.moment(asked.sender.language, stats.first_at),
            last=self._sentences.moment(asked.sender.language, stats.last_at),
            waiting=stats.waiting,
            epoch=stats.epoch,
        )

    async def _busiest(self, asked: IncomingMessage) -> Answer:
        """List chats by their messages, each with its name on the page of the inspector."""
        language, text = asked.sender.language, self._sentences.text
        busiest = await busiest_conversations(self._client, self._keys, _LISTED)
        lines = [
            text(
                language,
                "admin.inspect_line",
                chat=conversation.chat_id,
                name=self._name_of(conversation),
                messages=messages,
                when=self._sentences.moment(language, at),
            )
            for messages, at, conversation in busiest
        ]
        return Answer(render("\n".join([text(language, "admin.inspect_busiest"), *lines])))

    def _say(self, asked: IncomingMessage, *keys: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, *keys, **values))


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
        self.command = BotCommand("reload", self.answer, "operators")

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
