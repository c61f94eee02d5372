"""/recall replies to the very message that was found, or says its words if that cannot be."""

from dataclasses import replace
from decimal import Decimal

import pytest

from bot.costs import Budget, billed_to
from bot.features.recall.feature import RecallCommand
from bot.reply.parts import Part, Quote, from_json, text_of, to_json
from bot.telegram.updates import IncomingMessage, Sender
from bot.turn.permits import QuotaStep
from config.values import Price
from memory.limits.quotas import Quota
from memory.limits.usage import BilledCall, BillingSource, Tokens
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import Hidden
from memory.store.client import RedisClient
from tests.bot.features.services import SENTENCES
from tests.memory.conftest import memory_of
from tests.memory.turns import HERE, begin
from tests.memory.words_embedder import WordsEmbedder
from tests.settings import Settings

ANNA = Sender(7, "Anna")
AT = 1_774_000_000
ASKED = IncomingMessage(
    *(9, HERE.chat_id, 0), is_group=True, message_id=99, sent_at=AT, sender=ANNA,
    kind="command", text="", command="recall",
)  # fmt: skip
BOAT = Message(
    *(0, 0, "user", "Good morning\nThe boat is called Aurora", AT, 7, "Anna"),
    message_ids=(1, 2),
    lengths=(12, 26),
)
HARBOUR = Message(0, 0, "assistant", "The *harbour* of Oslo.\n\nIt is old.", AT, message_ids=(3,))
MOORING = Message(0, 0, "user", "My mooring costs a fortune", AT, 8, "Ben [x]")


async def test_recall_quotes_the_message_that_was_found_or_says_its_words(memory: Memory) -> None:
    turn = await begin(memory, 1)
    messages = [replace(each, tokens=9) for each in (BOAT, HARBOUR, MOORING)]
    await memory.turns.commit(turn, messages, memory.histories.cursor(HERE))
    recall = RecallCommand(memory, allowed, SENTENCES)

    async def found(words: str, chat_id: int = HERE.chat_id) -> list[tuple[str, Quote | None]]:
        asked = replace(ASKED, text=words, chat_id=chat_id)
        parts: tuple[Part, ...] = (await recall.answer(asked, HERE)).parts
        return [(part.text, part.quote) for part in parts]

    day = "20 March 2026"
    boat = "The boat is called Aurora"
    assert await found("Aurora boat") == [(f"{day} – you wrote:", Quote(2, boat))]
    formatted = f"{day} – I wrote:\nThe harbour of Oslo.\n\nIt is old."
    assert await found("harbour") == [(formatted, Quote(3))]
    assert await found("mooring") == [(f"{day} – Ben [x] wrote:\nMy mooring costs a fortune", None)]
    # The group has become a supergroup, where these ids are other messages.
    whole = f"{day} – you wrote:\nGood morning\n{boat}"
    assert await found("Aurora boat", -100) == [(whole, None)]
    assert await found("zebra") == [("I found no message about this here.", None)]
    assert (await found(" "))[0][0].startswith("Write what to look for")


async def allowed(*, as_turn: bool) -> bool:  # noqa: ARG001
    return True


@pytest.mark.parametrize("used_up", ["turns", "tokens", "budget", ""])
async def test_recall_uses_words_alone_once_a_quota_is_used_up(
    store: RedisClient, used_up: str
) -> None:
    embedder = WordsEmbedder()
    memory = memory_of(store, embedder)
    turn = await begin(memory, 1)
    await memory.turns.commit(turn, [BOAT], memory.histories.cursor(HERE))
    await memory.learn(HERE)
    settings = Settings(
        user_turns_per_minute=1 if used_up == "turns" else 2,
        user_tokens_per_day=9 if used_up == "tokens" else 10,
        prices=(Price("m", Decimal(1)),),
        budget_per_month=Decimal("0.000009") if used_up == "budget" else Decimal(1),
    )
    call = BilledCall(BillingSource("answer", "m"), Tokens(fresh=9), ANNA.id, HERE.tag)
    await memory.usage.count([call])
    budget = Budget(settings, memory.usage, memory.quotas)
    assert await memory.quotas.admit(ANNA.id, "a turn", Quota(2, 0)) == "admitted"
    recall = RecallCommand(memory, budget.allows, SENTENCES)
    with billed_to(HERE, ANNA.id):
        answer = await recall.answer(replace(ASKED, text="boat"), HERE)
    assert "wrote" in answer.parts[0].text
    assert ("boat?" in embedder.texts) is not bool(used_up)
    # Nothing was counted: the next turn is told about the quota, or answered.
    assert await QuotaStep(budget, SENTENCES).admit(7, "b") == (used_up or "admitted")


async def test_several_are_one_silent_message_with_a_way_to_each_and_without_old_questions(
    memory: Memory,
) -> None:
    question = Message(*(0, 0, "user", "which boat is called Aurora", AT, 7), message_ids=(11,))
    answer = Message(*(0, 0, "assistant", "Your boat Aurora.", AT), message_ids=(12,), used="m1")
    for number, said in enumerate(
        (
            [BOAT],
            [replace(MOORING, text="A boat costs money", message_ids=(9,))],
            [replace(MOORING, text="Hi", message_ids=(10,))],  # beside it, but not about it
            [question, answer],
        )
    ):
        turn = await begin(memory, number + 1)
        messages = [replace(each, tokens=9) for each in said]
        await memory.turns.commit(turn, messages, memory.histories.cursor(HERE))
    recall = RecallCommand(memory, allowed, SENTENCES)

    async def found(chat_id: int) -> Part:
        asked = replace(ASKED, text="boat Aurora", chat_id=chat_id)
        [part] = (await recall.answer(asked, HERE)).parts
        return part

    part = await found(HERE.chat_id)
    day = "20 March 2026"
    assert part.text == (
        f"1. {day} – you wrote:\nThe boat is called Aurora\n\n"
        f"2. {day} – Ben [x] wrote:\nA boat costs money"
    )
    quoted = [each for each in part.entities if each.type == "blockquote"]
    assert [text_of(part.text.encode("utf-16-le"), each) for each in quoted] == [
        "The boat is called Aurora",
        "A boat costs money",
    ]
    assert part.is_silent
    assert [each.callback_data for each in part.buttons[0]] == ["recall:1", "recall:2"]
    [jumped] = (await recall.jump(replace(ASKED, text="2"), HERE)).parts
    assert jumped.quote == Quote(9, "A boat costs money")
    [gone] = (await recall.jump(replace(ASKED, text="77"), HERE)).parts
    assert gone.text == "I found no message about this here."
    await memory.scopes.write(await memory.scopes.read(HERE), Write([Hidden(2)]))
    [hidden] = (await recall.jump(replace(ASKED, text="2"), HERE)).parts
    assert hidden.text.startswith("I don't show this message any more")
    assert from_json(to_json([part])) == (part,)
