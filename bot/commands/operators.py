"""`/stats` and `/inspect`: counts and times for operators, never content."""

import time
from dataclasses import dataclass

from bot.commands.bot_command import Answer
from bot.commands.clear_memory import is_number
from bot.commands.notices import figures
from bot.commands.sentences import Sentences
from bot.model.circuit_breaker import CircuitBreaker
from bot.telegram.updates import IncomingMessage
from memory.limits.capacity import CapacityMonitor
from memory.limits.dropping import Dropped
from memory.limits.stats import count_all, count_conversation
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope
from memory.store.store import Store


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
        store: Store,
        mailbox: Mailbox,
        capacity: CapacityMonitor,
        models: ModelsInUse,
        sentences: Sentences,
    ) -> None:
        self._client = store.client
        self._keys = store.keys
        self._mailbox = mailbox
        self._capacity = capacity
        self._models = models
        self._sentences = sentences
        self._started_at = time.time()

    async def stats(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say how much the bot stores, and how full Redis is if its size is known."""
        stats = await count_all(self._client, self._keys)
        capacity = await self._capacity.stats()
        keys = ["admin.stats", self._models.key] + ["admin.plan"] * (capacity.fill_level.limit > 0)
        return self._say(
            asked,
            *keys,
            model=self._models.first,
            second=self._models.second,
            conversations=stats.conversations,
            active_day=stats.active_last_day,
            waiting=max(0, stats.wake_ups - 1),  # the other one is that of this command
            redis_mb=round(stats.redis_bytes / 2**20, 1),
            uptime=_duration(time.time() - self._started_at),
            **figures(capacity.fill_level, capacity.dropped),
        )

    async def inspect(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say counts and times of one chat."""
        if not is_number(asked.text.strip()):
            return self._say(asked, "admin.inspect_usage")
        conversation = await self._mailbox.resolve(Scope.of_chat(int(asked.text)))
        stats = await count_conversation(self._client, self._keys, conversation)
        if not (stats.messages or stats.waiting or stats.epoch):
            return self._say(asked, "admin.nothing_there")
        keys = ["admin.inspect"] + ["admin.dropped"] * (stats.dropped != Dropped())
        return self._say(
            asked,
            *keys,
            messages=stats.messages,
            vectors=stats.vectors,
            first=self._sentences.moment(asked.sender.language, stats.first_at),
            last=self._sentences.moment(asked.sender.language, stats.last_at),
            waiting=stats.waiting,
            epoch=stats.epoch,
            dropped_vectors=stats.dropped.vectors,
            dropped_messages=stats.dropped.messages,
        )

    def _say(self, asked: IncomingMessage, *keys: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, *keys, **values))


def _duration(seconds: float) -> str:
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    return f"{days} d {hours % 24} h" if days else f"{hours} h {minutes % 60} min"
