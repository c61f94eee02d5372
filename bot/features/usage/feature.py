"""What `/usage` adds to the bot. The counting itself is a part of every model call."""

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from time import time

from bot.commands.bot_command import Answer, BotCommand
from bot.feature import Feature, Services
from bot.reply.parts import Parts
from bot.reply.render import render
from bot.telegram.updates import IncomingMessage
from memory.limits.quotas import DAY_S
from memory.limits.usage import (
    DRAWN,
    HEARD,
    NO_PERSON,
    SPOKEN,
    BotUsage,
    BySource,
    Tokens,
    next_day,
    summed,
    together,
)
from memory.store.keys import Scope

_CHAT_ID = re.compile(r"-?\d+")


def feature(services: Services) -> Feature:
    """Return the feature."""
    command = BotCommand("usage", UsageCommand(services).answer, "private", takes=_CHAT_ID)
    return Feature(name="usage", commands=(command,))


_LARGEST = 10


class UsageCommand:
    """Answers in private only, with costs if prices are set."""

    def __init__(self, services: Services) -> None:
        self._memory = services.memory
        self._settings = services.settings
        self._budget = services.budget
        self._sentences, self._text = services.sentences, services.sentences.text

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what is left to a person; show an operator the tokens of the bot, or of one chat."""
        sender, now = asked.sender, time()
        language = sender.language
        if asked.is_group:
            return Answer(self._sentences.say(language, "usage.only_private"))
        if not (sender.is_person and sender.id in self._settings.admin_user_ids):
            if asked.text:
                return Answer(self._sentences.say(language, "usage.not_admin"))
            return Answer(await self._left(language, sender.id))
        if asked.text:
            # Of a group with topics, that of its General topic.
            chat = await self._memory.mailbox.resolve(Scope.of_chat(int(asked.text)))
            sums = await self._memory.usage.of_conversation(chat, now)
            return Answer(render(self._period(language, "usage.chat", sums)))
        days = await self._memory.usage.of_person(sender.id, now)
        month = await self._memory.usage.of_bot(now, _LARGEST)
        if not month.sums:
            return Answer(self._sentences.say(language, "usage.nothing"))
        today = days.get(datetime.fromtimestamp(now, UTC).day, {})
        own = (("usage.today", today), ("usage.month", summed(days.values())))
        texts = [self._period(language, title, sums) for title, sums in own]
        texts += self._of_bot(language, month, now)
        return Answer(render("\n\n".join(texts)))

    async def _left(self, language: str, person: int) -> Parts:
        if await self._budget.is_used_up():
            return self._sentences.say(language, "usage.no_budget")
        limit = self._settings.user_tokens_per_day
        if not limit:
            return self._sentences.say(language, "usage.unlimited")
        left = max(0, limit - await self._memory.quotas.spent_today(person)) / limit
        values = {"percent": math.ceil(100 * left), "unix": next_day()}
        return self._sentences.say(language, "usage.left", **values)

    def _of_bot(self, language: str, month: BotUsage, now: float) -> Iterator[str]:
        yield self._period(language, "usage.bot", month.sums)
        yield "\n".join(self._shares(language, month.sums))
        if amount := self._budget.settings.budget_per_month:
            spent = self._budget.prices.cost(month.sums)
            percent = int(100 * spent / amount)
            yield self._text(language, "usage.budget", spent=spent, budget=amount, percent=percent)
        if self._budget.prices and (missing := self._budget.prices.missing(month.sums)):
            yield self._text(language, "usage.no_price", models=", ".join(missing))
        first = datetime.fromtimestamp(now, UTC).replace(day=1).timestamp()
        lines = [self._text(language, "usage.days")]
        for day, sums in month.days.items():
            name = self._sentences.day(language, first + (day - 1) * DAY_S)
            lines.append(self._line(language, name, sums))
        lines += ["", self._text(language, "usage.largest")]
        for person, tokens in month.people:
            name = str(person) if person != NO_PERSON else self._text(language, "usage.nobody")
            lines.append(self._text(language, "usage.line", name=name, total=tokens))
        yield "\n".join([*lines, "", self._text(language, "usage.ids")])

    def _period(self, language: str, title: str, sums: BySource) -> str:
        """Return what was used in a time, by purpose; `title` is a key."""
        answers = _of_kind(sums, "answer")
        text = self._text(
            language,
            "usage.period",
            title=self._text(language, title),
            total=together(sums).total,
            answers=answers.total,
            fresh=answers.fresh,
            cached=answers.cached,
            output=answers.output,
            reasoning=answers.reasoning,
            internal=_of_kind(sums, "internal").total,
            embedding=_of_kind(sums, "embedding").total,
        )
        if not self._budget.prices:
            return text
        cost = self._budget.prices.cost(sums)
        return f"{text}\n{self._text(language, 'usage.cost', cost=cost)}"

    def _line(self, language: str, name: str, sums: BySource) -> str:
        total = together(sums).total
        if not self._budget.prices:
            return self._text(language, "usage.line", name=name, total=total)
        cost = self._budget.prices.cost(sums)
        return self._text(language, "usage.line_with_cost", name=name, total=total, cost=cost)

    def _shares(self, language: str, sums: BySource) -> Iterator[str]:
        total = together(sums).total or 1
        shares = {"learning_share": _of_kind(sums, "internal").total}
        second = together({each: sums[each] for each in sums if each.is_second}).total
        if second or self._settings.fallback_model:
            shares["second_share"] = second
        for key, tokens in shares.items():
            yield self._text(language, f"usage.{key}", percent=100 * tokens / total)
        if heard_s := _of_kind(sums, HEARD).reasoning:
            yield self._text(language, "usage.heard", minutes=-(-heard_s // 60))
        if spoken := _of_kind(sums, SPOKEN).reasoning:
            yield self._text(language, "usage.spoken", characters=spoken)
        if drawn := _of_kind(sums, DRAWN).reasoning:
            yield self._text(language, "usage.drawn", count=drawn)


def _of_kind(sums: BySource, kind: str) -> Tokens:
    return together({each: sums[each] for each in sums if each.kind == kind})
