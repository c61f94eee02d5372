"""`/usage`: what a person's messages took, and for admins what the whole bot costs."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time

from bot.commands.general import Answer
from bot.commands.sentences import Sentences
from bot.metrics.budget import Budget
from bot.metrics.prices import shown
from bot.reply.render import render
from bot.telegram.updates import IncomingMessage
from memory.limits.quotas import DAY_S
from memory.limits.usage import NOBODY, BotUsage, BySource, Source, Tokens, day_number, together
from memory.memory import Memory
from memory.store.keys import Scope

_LARGEST = 10


@dataclass(frozen=True, slots=True)
class UsageBounds:
    """A person's tokens a day (0 is no bound), and who is exempt from it and sees everything."""

    tokens_per_day: int
    admins: frozenset[int]


class UsageCommand:
    """Words sums in the language of who asks."""

    def __init__(
        self, memory: Memory, sentences: Sentences, budget: Budget, bounds: UsageBounds
    ) -> None:
        self._usage = memory.usage
        self._rations = memory.quotas
        self._mailbox = memory.mailbox
        self._sentences = sentences
        self._budget = budget
        self._bounds = bounds

    async def show(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Tell a person their own usage, and admins that of the whole bot or of one chat.

        In private only.
        """
        language = asked.sender.language
        if asked.is_group:
            return Answer(self._sentences.say(language, "usage.only_private"))
        now = time()
        is_admin = asked.sender.is_person and asked.sender.id in self._bounds.admins
        if is_admin and (chat := asked.text.strip()).removeprefix("-").isdecimal():
            return Answer(render(await self._chat(language, int(chat), now)))
        texts = [
            *await self._own(language, asked.sender.id, now),
            *await self._bound(language, asked.sender.id, now),
        ]
        if is_admin:
            month = await self._usage.of_bot(now, _LARGEST)
            texts += self._whole(language, month, now)
        return Answer(render("\n\n".join(texts)))

    async def _chat(self, language: str, chat_id: int, now: float) -> str:
        """Return the month of one chat, of a group with topics that of no topic."""
        conversation = await self._mailbox.resolve(Scope.of_chat(chat_id))
        sums = await self._usage.of_conversation(conversation, now)
        return self._period(language, "usage.chat", sums)

    async def _own(self, language: str, person: int, now: float) -> list[str]:
        days = await self._usage.of_person(person, now)
        today = days.get(datetime.fromtimestamp(now, UTC).day, {})
        return [
            self._period(language, "usage.today", today),
            self._period(language, "usage.month", _summed(days.values())),
        ]

    async def _bound(self, language: str, person: int, now: float) -> list[str]:
        bound = self._bounds.tokens_per_day
        if not bound or person in self._bounds.admins:
            return [self._sentences.text(language, "usage.unbounded")]
        spent = await self._rations.spent_today(person)
        resets_at = self._sentences.moment(language, (day_number(now) + 1) * DAY_S)
        left = max(0, bound - spent)
        text = self._sentences.text
        return [text(language, "usage.bound", bound=bound, left=left, resets_at=resets_at)]

    def _whole(self, language: str, month: BotUsage, now: float) -> Iterator[str]:
        """Yield the paragraphs for admins."""
        text, prices = self._sentences.text, self._budget.prices
        yield self._period(language, "usage.bot", month.sums)
        yield "\n".join(self._shares(language, month.sums))
        if self._budget.amount:
            spent = prices.cost(month.sums)
            amount = self._budget.amount
            percent = int(100 * spent / amount)
            values = {"spent": shown(spent), "budget": shown(amount), "percent": percent}
            yield text(language, "usage.budget", **values)
        if prices and (missing := prices.missing(month.sums)):
            yield text(language, "usage.unpriced", models=", ".join(missing))
        first = datetime.fromtimestamp(now, UTC).replace(day=1).timestamp()
        lines = [text(language, "usage.days")]
        for day, sums in month.days.items():
            named = self._sentences.day(language, first + (day - 1) * DAY_S)
            lines.append(self._line(language, named, sums))
        yield "\n".join(lines)
        lines = [text(language, "usage.largest")]
        for person, tokens in month.people:
            named = str(person) if person != NOBODY else text(language, "usage.nobody")
            lines.append(text(language, "usage.line", name=named, total=tokens))
        yield "\n".join(lines)

    def _period(self, language: str, title: str, sums: BySource) -> str:
        """Return what was billed in a time, by what it was for."""
        answers = _of_kind(sums, "answer")
        text = self._sentences.text(
            language,
            "usage.period",
            title=self._sentences.text(language, title),
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
        cost = shown(self._budget.prices.cost(sums))
        return f"{text}\n{self._sentences.text(language, 'usage.cost', cost=cost)}"

    def _line(self, language: str, name: str, sums: BySource) -> str:
        text = self._sentences.text
        total = together(sums).total
        if not self._budget.prices:
            return text(language, "usage.line", name=name, total=total)
        cost = shown(self._budget.prices.cost(sums))
        return text(language, "usage.line_with_cost", name=name, total=total, cost=cost)

    def _shares(self, language: str, sums: BySource) -> Iterator[str]:
        total = together(sums).total or 1
        second = together({each: sums[each] for each in sums if each.is_second}).total
        internal = _of_kind(sums, "internal").total
        for key, tokens in (("learning_share", internal), ("second_share", second)):
            percent = round(100 * tokens / total, 1)
            yield self._sentences.text(language, f"usage.{key}", percent=percent)


def _of_kind(sums: BySource, kind: str) -> Tokens:
    return together({each: sums[each] for each in sums if each.kind == kind})


def _summed(days: Iterable[BySource]) -> BySource:
    sums: dict[Source, Tokens] = {}
    for day in days:
        for source, tokens in day.items():
            sums[source] = sums.get(source, Tokens()) + tokens
    return sums
