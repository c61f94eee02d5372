"""A turn counts against a quota if it calls a model, whatever its outcome."""

from dataclasses import replace
from decimal import Decimal
from time import time

import pytest

from bot.costs import Budget
from bot.reply.parts import Part
from bot.telegram.admission import Admission, Members
from bot.telegram.chat import Destination
from bot.telegram.updates import MessageKind
from bot.turn.answer import Answerer, CommandStep
from bot.turn.outbox import Outbox
from bot.turn.permits import QuotaStep
from bot.turn.request import Request
from config.values import Price
from memory.limits.quotas import Quota, Quotas
from memory.limits.usage import BilledCall, BillingSource, Tokens, next_day
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES
from tests.bot.telegram import raw
from tests.memory.turns import history_of
from tests.quiet_chat import no_command
from tests.settings import Settings

ANNA, BEN, GROUP = 7, 8, -100
ANSWER = Outbox(Destination(ANNA), (Part("yes"),), said="yes")
NO_QUOTA = Quota(0, 0)


def request_of(kind: MessageKind, text: str, number: int) -> Request:
    update = replace(raw.inbound(raw.message("Hello")), kind=kind, text="voice", update_id=number)
    message = Message(0, 0, "user", text, 1_000.0, ANNA, "Anna", (number,), 1)
    return Request((update,), message, (message,))


async def answered(_request: Request, _history: ChatHistory) -> Outbox:
    return ANSWER


def quota_step(
    memory: Memory,
    quota: Quota = NO_QUOTA,
    exempt: frozenset[int] = frozenset(),
    budget_per_month: str = "0",
) -> QuotaStep:
    settings = Settings(
        prices=(Price("m", Decimal(2), Decimal(1), Decimal(8)),),
        budget_per_month=Decimal(budget_per_month),
        user_turns_per_minute=quota.turns,
        user_tokens_per_day=quota.tokens_per_day,
        admin_user_ids=exempt,
    )
    return QuotaStep(Budget(settings, memory.usage, memory.quotas), SENTENCES)


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
    admission = Admission(Settings(), Members(memory.store))
    commands = CommandStep(no_command, SENTENCES, admission).answer
    steps = [commands, quota_step(memory, Quota(1, 0)).answer, answered]
    answerer = Answerer(steps, SENTENCES, lambda _: None)
    history = await history_of(memory)
    outboxes = [await answerer.answer(request_of(kind, text, n), history) for n in range(3)]
    assert sum(not outbox.is_unread for outbox in outboxes) == answered_times
    if answered_times == 1:
        first, notice, silence = outboxes
        assert (first, len(notice.parts), silence.parts) == (ANSWER, 1, ())


async def test_beyond_the_budget_admins_get_answers_others_a_daily_notice(memory: Memory) -> None:
    quota = quota_step(memory, Quota(1, 1), frozenset({BEN}), budget_per_month="0.01")
    assert await quota.admit(ANNA, "a") == "admitted"
    call = BilledCall(BillingSource("answer", "m"), Tokens(output=1250), BEN, "c:8:0")
    await memory.usage.count([call])
    assert [await quota.admit(ANNA, turn) for turn in "bcb"] == ["budget", "silenced", "budget"]
    assert [await quota.admit(BEN, turn) for turn in "de"] == ["admitted"] * 2
    assert not await memory.client.call("EXISTS", memory.keys.usage("turns", BEN))


async def test_a_task_counts_is_never_too_quick_and_says_each_time_that_it_was_not_done(
    memory: Memory,
) -> None:
    quota, history = quota_step(memory, Quota(1, 9)), await history_of(memory)
    asked = request_of("text", "⏰ Say hello", 1)
    tasks = [replace(asked, updates=(replace(asked.last, update_id=-n),)) for n in range(1, 5)]
    assert [await quota.answer(each, history) for each in tasks[:2]] == [None, None]
    assert await quota.admit(ANNA, "written meanwhile") == "turns"
    call = BilledCall(BillingSource("answer", "m"), Tokens(output=9), ANNA, "c:7:0")
    await memory.usage.count([call])
    told = [await quota.answer(each, history) for each in (*tasks[2:], asked)]
    task = SENTENCES.say("de", "quota.task")
    tokens = SENTENCES.say("de", "quota.tokens", unix=next_day())
    assert [each and each.parts for each in told] == [task, task, tokens]


async def test_channels_and_hidden_admins_of_a_group_share_one_quota(memory: Memory) -> None:
    quota, history = quota_step(memory, Quota(1, 0)), await history_of(memory)
    noticed = []
    for number, sender_id in enumerate((-1, -2, GROUP, ANNA)):
        asked = request_of("text", "Hello", number)
        update = replace(asked.last, chat_id=GROUP, is_group=True)
        message = replace(asked.message, sender_id=sender_id)
        asked = replace(asked, updates=(update,), message=message)
        noticed.append(await quota.answer(asked, history) is not None)
    assert noticed == [False, True, True, False]


def of_group(request: Request, command: str = "") -> Request:
    return replace(request, updates=(replace(request.last, is_group=True, command=command),))


async def test_in_a_group_everything_answered_counts_and_one_notice_says_so(memory: Memory) -> None:
    quota = quota_step(memory)
    kinds: tuple[MessageKind, ...] = ("text", "command", "document", "unsupported", "again")
    asked = [of_group(request_of(kind, "", number)) for number, kind in enumerate(kinds)]
    assert [await quota.share(each) for each in (*asked, asked[0])] == [None] * 6
    late = [of_group(request_of("command", "", number)) for number in (11, 12)]
    told, silence = [await quota.share(each) for each in late]
    assert told == Outbox(late[0].to, SENTENCES.say("de", "quota.turns"), is_unread=True)
    assert silence == Outbox(late[1].to, (), is_unread=True)


async def test_commands_of_many_members_leave_messages_for_those_who_ask(memory: Memory) -> None:
    quota = quota_step(memory)

    async def refusal(kind: MessageKind, member: int, command: str = "help") -> Outbox | None:
        asked = of_group(request_of(kind, "", member), command)
        last = replace(asked.last, sender=replace(asked.last.sender, id=member))
        return await quota.share(replace(asked, updates=(last,)))

    refusals = [await refusal("command", member) for member in range(1, 51)]
    assert refusals[:12] == [None] * 12
    assert [len(each.parts) for each in refusals[12:] if each] == [1, *[0] * 37]
    assert await refusal("text", 51, "") is None
    assert await refusal("command", 52, "clear") is None


async def test_a_flood_keeps_nobody_from_erasing_without_telling_them(memory: Memory) -> None:
    quota = quota_step(memory)
    for number in range(9):
        await quota.share(of_group(request_of("command", "", number), "help"))
    assert await quota.share(of_group(request_of("command", "", 10), "forget")) is None
    for number, command in enumerate(("clear", "memory", "stop", "off"), start=11):
        refused = await quota.share(of_group(request_of("command", "", number), command))
        assert refused
        assert refused.parts == SENTENCES.say("de", "quota.turns")


async def test_an_edit_beyond_the_share_of_a_group_changes_no_answer(memory: Memory) -> None:
    quota, history = quota_step(memory), await history_of(memory)
    edits = [of_group(request_of("edit", "Hello", number)) for number in range(6)]
    *before, told = [await quota.answer(each, history) for each in edits]
    assert before == [None] * 5
    assert told
    assert told.parts == SENTENCES.say("de", "quota.edited_turns")


@pytest.mark.parametrize("where", ["private", "unlimited", "task"])
async def test_only_groups_with_a_send_rate_are_shared(memory: Memory, where: str) -> None:
    quota, asked = quota_step(memory), request_of("command", "", -1 if where == "task" else 1)
    if where == "unlimited":
        unshared = Quotas(memory.store, shares_groups=False)
        quota = QuotaStep(replace(quota.budget, quotas=unshared), SENTENCES)
    asked = asked if where == "private" else of_group(asked)
    assert await quota.share(asked) is None
    assert await memory.client.call("DBSIZE") == 0


async def test_tokens_of_a_group_as_payer_count_in_the_group_too(memory: Memory) -> None:
    here, source = Scope.of_chat(GROUP), BillingSource("answer", "m")
    await memory.usage.count([BilledCall(source, Tokens(5), GROUP, here.tag)])
    assert await memory.usage.of_conversation(here, time()) == {source: Tokens(5)}
    assert await memory.quotas.spent_today(GROUP) == 5


@pytest.mark.parametrize("kind", ["text", "command"])
async def test_what_another_process_accepted_is_refused_with_a_notice(
    memory: Memory, kind: MessageKind
) -> None:
    """Processes whose settings differ must not drop what intake has accepted."""
    settings = Settings(allowed_user_ids=frozenset({BEN}))
    step = CommandStep(no_command, SENTENCES, Admission(settings, Members(memory.store)))
    request = request_of(kind, "Hello", 1)
    notice = SENTENCES.say(request.language, "error.not_served")
    answer = await step.answer(request, await history_of(memory))
    assert answer == Outbox(request.to, notice, is_unread=True)
