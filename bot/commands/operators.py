"""The operators' commands: counts and times, erasing on request; answered only in private.

Never content.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from bot.commands.general import Answer, Handler
from bot.commands.notices import figures
from bot.commands.sentences import Sentences
from bot.model.resting import Rest
from bot.telegram.updates import IncomingMessage
from memory.limits.dropping import Dropped
from memory.memory import Memory
from memory.scopes.stats import count_all, count_conversation
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Target:
    """What `/clear_memory` shall erase: everything, a chat with all its topics, or a person."""

    kind: str
    id: int = 0

    @classmethod
    def of(cls, words: str, here: int) -> "Target | None":
        """Read the command's arguments, or a button's; `None` when they name nothing."""
        match words.split():
            case []:
                return cls("chat", here)
            case ["all"]:
                return cls("all")
            case ["chat" | "user" as kind, number] if _is_number(number):
                return cls(kind, int(number))
            case [number] if _is_number(number):
                return cls("chat", int(number))
            case _:
                return None

    def __str__(self) -> str:
        """Return the form that fits a sentence and a button."""
        return self.kind if self.kind == "all" else f"{self.kind} {self.id}"


@dataclass(frozen=True, slots=True)
class ModelsInUse:
    """The models that answer; `second` is "" without one, `rest` that of the first one here."""

    first: str
    second: str
    rest: Rest

    @property
    def key(self) -> str:
        """Return the key of the sentence that says which one answers."""
        if not self.second:
            return "admin.model"
        return "admin.model_rests" if self.rest.is_on else "admin.model_and_second"


class AdminCommands:
    """`/clear_memory /stats /inspect`, and `others` behind the same check."""

    def __init__(
        self,
        memory: Memory,
        sentences: Sentences,
        admins: frozenset[int],
        others: Mapping[str, Handler],
        models: ModelsInUse,
    ) -> None:
        self._models = models
        self._memory = memory
        self._others = others
        self._sentences = sentences
        self._admins = admins
        self._started_at = time.time()

    @property
    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by command name, each behind the check who asks and where."""
        commands = {
            "clear_memory": self.clear_memory,
            "stats": self.stats,
            "inspect": self.inspect,
            **self._others,
        }
        return {name: self._guarded(name, handler) for name, handler in commands.items()}

    async def clear_memory(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before a chat, a person or everything is erased."""
        target = Target.of(asked.text, asked.chat_id)
        if target is None:
            return self._say(asked, "admin.clear_memory_usage")
        nonce = await self._memory.erasure.ask(conversation, "admin", asked.sender.id, str(target))
        action = f"admin:{nonce}:{target}"
        language = asked.sender.language
        return Answer(
            self._sentences.ask(language, "admin.clear_memory_ask", action, target=target)
        )

    async def stats(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Tell how much the bot keeps, and of how much room where that is known."""
        stats = await count_all(self._memory.client, self._memory.keys)
        plan = await self._memory.plan.stats()
        keys = ["admin.stats", self._models.key] + ["admin.plan"] * (plan.filling.limit > 0)
        return self._say(
            asked,
            *keys,
            model=self._models.first,
            second=self._models.second,
            conversations=stats.conversations,
            active_day=stats.active_last_day,
            waiting=stats.wake_ups,
            redis_mb=round(stats.redis_bytes / 2**20, 1),
            uptime=_duration(time.time() - self._started_at),
            **figures(plan.filling, plan.dropped),
        )

    async def inspect(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Tell counts and times of one chat."""
        if not _is_number(asked.text.strip()):
            return self._say(asked, "admin.inspect_usage")
        conversation = await self._memory.mailbox.resolve(Scope.of_chat(int(asked.text)))
        stats = await count_conversation(self._memory.client, self._memory.keys, conversation)
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

    def _guarded(self, name: str, handler: Handler) -> Handler:
        async def guarded(asked: IncomingMessage, conversation: Scope) -> Answer:
            is_admin = asked.sender.is_person and asked.sender.id in self._admins
            if not is_admin or asked.is_group:
                log.warning("admin command refused", command=name, user=asked.sender.id)
                return self._say(asked, "admin.only_private" if is_admin else "admin.not_admin")
            log.info("admin command", command=name, user=asked.sender.id)
            await self._memory.client.call(
                "HSET", self._memory.keys.admins, asked.sender.id, asked.sender.language
            )
            return await handler(asked, conversation)

        return guarded

    def _say(self, asked: IncomingMessage, *keys: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, *keys, **values))


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def _duration(seconds: float) -> str:
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    return f"{days} d {hours % 24} h" if days else f"{hours} h {minutes % 60} min"
