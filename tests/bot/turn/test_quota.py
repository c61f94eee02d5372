"""Only what asks a model is counted, whatever becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal

import pytest

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from bot.metrics.budget import Budget
from bot.metrics.prices import Prices
from bot.reply.parts import Part
from bot.telegram.updates import IncomingMessage, MessageKind
from bot.turn.outbox import Outbox
from bot.turn.quota import Allowance, RationedAnswerer
from config.values import Price
from memory.behaviors.context import AgentContext
from memory.limits.quotas import Quota
from memory.limits.usage import BilledCall, Source, Tokens
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from tests.bot.telegram import raw
from tests.memory.conftest import memory

__all__ = ["memory"]

ANNA, BEN = 7, 8
ANSWER = Outbox(ANNA, 0, 0, (Part("yes"),), said="yes")


@dataclass
class Answers:
    """Always answers; counts how often."""

    times: int = 0
    apologies: list[str] = field(default_factory=list)

    async def answer(
        self, _mail: Sequence[IncomingMessage], _words: Message, _history: ChatHistory
    ) -> Outbox:
        self.times += 1
        return ANSWER

    def apologise(self, _mail: Sequence[IncomingMessage], reference: str) -> Outbox:
        self.apologies.append(reference)
        return ANSWER


def unbounded(memory: Memory) -> Budget:
    return Budget(Decimal(0), Prices(()), memory.usage)


async def history_of(memory: Memory) -> ChatHistory:
    context = await AgentContext.get_or_create({"chat_id": ANNA}, memory.histories, now=0)
    return context.chat_history


def said(text: str, message_id: int) -> Message:
    return Message(0, 0, "user", text, 1_000.0, ANNA, "Anna", (message_id,), 1)


def mail(kind: MessageKind, text: str = "") -> list[IncomingMessage]:
    return [replace(raw.inbound(raw.message("Hello")), kind=kind, text=text)]


@pytest.mark.parametrize(
    ("kind", "words", "answered"),
    [
        ("text", "Hello", 1),
        ("document", "", 1),
        ("unsupported", "Hello, and then a voice", 1),
        ("unsupported", "", 3),
        ("command", "", 3),
        ("stranger", "Let me in", 3),
    ],
)
async def test_what_asks_a_model_is_counted(
    memory: Memory, kind: MessageKind, words: str, answered: int
) -> None:
    answers = Answers()
    allowance = Allowance(memory.quotas, Quota(1, 0), unbounded(memory), frozenset())
    rationed = RationedAnswerer(answers, allowance, Sentences(Catalogue()))
    history = await history_of(memory)
    outboxes = [
        await rationed.answer(mail(kind, "voice"), said(words, number), history)
        for number in range(3)
    ]
    assert answers.times == answered
    if answered == 1:
        _, notice, silence = outboxes
        assert (notice.unread, len(notice.parts), silence.unread, silence.parts) == (
            *(True, 1),
            *(True, ()),
        )


async def test_admins_are_not_counted(memory: Memory) -> None:
    allowance = Allowance(memory.quotas, Quota(1, 1), unbounded(memory), frozenset({ANNA}))
    for turn in ("a", "b", "c"):
        assert await allowance.admit(ANNA, turn) == "admitted"
    assert await memory.client.call("DBSIZE") == 0


async def test_beyond_the_budget_admins_are_answered_and_others_told_once_a_day(
    memory: Memory,
) -> None:
    prices = Prices([Price("m", Decimal(2), Decimal(1), Decimal(8))])
    budget = Budget(Decimal("0.01"), prices, memory.usage)
    allowance = Allowance(memory.quotas, Quota(0, 0), budget, frozenset({BEN}))
    assert await allowance.admit(ANNA, "a") == "admitted"
    call = BilledCall.now(Source("answer", "m"), Tokens(output=1250), BEN, "c:8:0")
    await memory.usage.count([call])
    assert [await allowance.admit(ANNA, turn) for turn in "bcb"] == ["budget", "silenced", "budget"]
    assert await allowance.admit(BEN, "d") == "admitted"
