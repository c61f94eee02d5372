"""`/stats` and `/inspect` (counts and times, never content), for operators."""

import time

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.notices import figures
from bot.feature import Feature, Services
from bot.reply.render import render
from bot.telegram.updates import IncomingMessage
from memory.scopes.stats import count_all, count_conversation
from memory.store.keys import Scope

_LISTED = 10
_COMPARED = 200  # conversations among which the busiest are looked for


def feature(services: Services) -> Feature:
    """Return the feature."""
    stats = StatsCommands(services)
    return Feature(
        name="stats",
        commands=(
            BotCommand("stats", stats.stats, "operators"),
            BotCommand("inspect", stats.inspect, "operators", takes=ANYTHING),
        ),
    )


class StatsCommands:
    """Counts what the bot stores, in all and of one chat."""

    def __init__(self, services: Services) -> None:
        self._memory = services.memory
        self._settings = services.settings
        self._conditions = services.models.conditions
        self._sentences = services.sentences
        self._name_of = services.name_of
        self._started_at = time.time()

    async def stats(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say how much the bot stores, and how full Redis is if its size is known."""
        stats = await count_all(self._memory.store)
        fill_level = await self._memory.capacity.fill_level()
        second, model = self._settings.fallback_model, "admin.model"
        if second:
            breakers = [each.breaker for each in self._conditions if each.part == "answers"]
            rests = any(each.is_open for each in breakers)
            model = "admin.model_rests" if rests else "admin.model_and_second"
        keys = ["admin.stats", model] + ["admin.plan"] * (fill_level.limit > 0)
        minutes = int((time.time() - self._started_at) // 60)
        hours, days = minutes // 60, minutes // (24 * 60)
        return self._say(
            asked,
            *keys,
            model=self._settings.openai_model,
            second=second,
            conversations=stats.conversations,
            active_day=stats.active_last_day,
            waiting=max(0, stats.wake_ups - 1),  # the other one is that of this command
            redis_mb=stats.redis_bytes / 2**20,
            uptime=f"{days} d {hours % 24} h" if days else f"{hours} h {minutes % 60} min",
            **figures(fill_level),
        )

    async def inspect(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say counts and times of one chat; without a chat, which ones are the busiest."""
        if not asked.text.strip():
            return await self._busiest(asked)
        if not asked.text.strip().removeprefix("-").isdecimal():
            return self._say(asked, "admin.inspect_usage")
        conversation = await self._memory.mailbox.resolve(Scope.of_chat(int(asked.text)))
        stats = await count_conversation(self._memory.store, conversation)
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
        language, text = asked.sender.language, self._sentences.text
        client, keys = self._memory.client, self._memory.keys
        replies = await client.pipeline(
            [("ZREVRANGE", index, 0, _COMPARED - 1, "WITHSCORES") for index in keys.conversations]
        )
        found = [(float(at), Scope(tag.decode())) for reply in replies for tag, at in reply]
        newest = sorted(found, key=lambda each: -each[0])[:_COMPARED]
        sizes = await client.pipeline([("XLEN", keys.scope(scope).log) for _, scope in newest])
        compared = [(int(size), *each) for size, each in zip(sizes, newest, strict=True)]
        busiest = sorted(compared, key=lambda each: each[:2], reverse=True)[:_LISTED]
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
