"""A turn counts against a quota if it calls a model, whatever its outcome."""

from dataclasses import replace
from decimal import Decimal

import pytest

from bot.commands.sentences import Sentences
from bot.costs.budget import Budget
from bot.language.catalogue import Catalogue
from bot.reply.parts import Part
from bot.telegram.admission import Admission
from bot.telegram.chat import Destination
from bot.telegram.updates import MessageKind
from bot.turn.answer import Answerer, CommandStep
from bot.turn.outbox import Outbox
from bot.turn.quota import QuotaStep
from bot.turn.request import Request
from config.settings import Settings
from config.values import Price
from memory.behaviors.context import AgentContext
from memory.limits.billed import BilledCall, BillingSource, Tokens
from memory.limits.quotas import Quota
from memory.memory import Memory
from memory.message import Message
from memory.queue.open_turn import OpenTurn
from memory.scopes.history import ChatHistory
from tests.bot.telegram import raw
from tests.memory.conftest import memory

__all__ = ["memory"]

ANNA, BEN = 7, 8
ANSWER = Outbox(Destination(ANNA), (Part("yes"),), said="yes")
SENTENCES = Sentences(Catalogue())


async def history_of(memory: Memory) -> ChatHistory:
    context = await AgentContext.get_or_create({"chat_id": ANNA}, memory.histories, now=0)
    return context.chat_history


def request_of(kind: MessageKind, text: str, number: int) -> Request:
    update = replace(raw.inbound(raw.message("Hello")), kind=kind, text="voice", update_id=number)
    message = Message(0, 0, "user", text, 1_000.0, ANNA, "Anna", (number,), 1)
    return Request((update,), message, (message,))


async def answered(_request: Request, _history: ChatHistory) -> Outbox:
    return ANSWER


def quota_step(memory: Memory, quota: Quota, exempt: frozenset[int] = frozenset()) -> QuotaStep:
    settings = Settings(
        user_turns_per_minute=quota.turns_per_minute,
        user_tokens_per_day=quota.tokens_per_day,
        admin_user_ids=exempt,
    )
    return QuotaStep(memory.quotas, settings, Budget(settings, memory.usage), SENTENCES)


@pytest.mark.parametrize(
    ("kind", "text", "answered_times"),
    [
        ("text", "Hello", 1),
        ("document", "", 1),
        ("unsupported", "Hello, and then a voice", 1),
        ("unsupported", "", 3),
        ("command", "", 3),
    ],
)
async def test_only_a_turn_that_calls_a_model_counts_against_the_quota(
    memory: Memory, kind: MessageKind, text: str, answered_times: int
) -> None:
    commands = CommandStep({}, SENTENCES, Admission(Settings(), memory.access)).answer
    steps = [commands, quota_step(memory, Quota(1, 0)).answer, answered]
    answerer = Answerer(steps, no_give_up, SENTENCES, memory.confirmations, lambda _: None)
    history = await history_of(memory)
    outboxes = [
        await answerer.answer(request_of(kind, text, number), history) for number in range(3)
    ]
    assert sum(not outbox.is_unread for outbox in outboxes) == answered_times
    if answered_times == 1:
        first, notice, silence = outboxes
        assert (first, len(notice.parts), silence.parts) == (ANSWER, 1, ())


async def no_give_up(_opened: OpenTurn) -> Outbox:
    raise NotImplementedError


async def test_admins_are_not_counted(memory: Memory) -> None:
    quota = quota_step(memory, Quota(1, 1), frozenset({ANNA}))
    for turn in ("a", "b", "c"):
        assert await quota.admit(ANNA, turn) == "admitted"
    assert await memory.client.call("DBSIZE") == 0


async def test_beyond_the_budget_only_admins_are_answered_and_others_get_one_notice_a_day(
    memory: Memory,
) -> None:
    prices = (Price("m", Decimal(2), Decimal(1), Decimal(8)),)
    settings = Settings(
        prices=prices, budget_per_month=Decimal("0.01"), admin_user_ids=frozenset({BEN})
    )
    quota = QuotaStep(memory.quotas, settings, Budget(settings, memory.usage), SENTENCES)
    assert await quota.admit(ANNA, "a") == "admitted"
    call = BilledCall.now(BillingSource("answer", "m"), Tokens(output=1250), BEN, "c:8:0")
    await memory.usage.count([call])
    assert [await quota.admit(ANNA, turn) for turn in "bcb"] == ["budget", "silenced", "budget"]
    assert await quota.admit(BEN, "d") == "admitted"
