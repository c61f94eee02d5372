"""Questions by button: stored with their reply, answered once, and erased."""

from dataclasses import replace

import pytest

from bot.reply.parts import Button, Entity, Part, Quote
from bot.telegram.chat import Destination
from bot.turn.outbox import Outbox
from memory.erasure.questions import NotConfirmed, Question
from memory.memory import Memory
from memory.queue.open_turn import Interrupted, OpenTurn
from memory.store.errors import LeaseLost
from tests.memory.turns import ANN, HERE, begin, clear, exchange, put, take

ABOUT = '[1,"order","{\\"thing\\":\\"a|b\\"}"]'


async def asked_by_a_turn(memory: Memory, turn: OpenTurn, question: Question) -> None:
    outbox = f'["{question.nonce}"]'.encode()
    await memory.turns.write_outbox(turn, outbox, {question.nonce: question.stored})


async def test_what_is_agreed_to_begins_for_one_press_and_only_once(memory: Memory) -> None:
    nonce = await memory.questions.ask(HERE, "tool", ANN, ABOUT)
    assert await memory.questions.begin(HERE, nonce, 50) == (ABOUT, "first")
    assert await memory.questions.begin(HERE, nonce, 50) == (ABOUT, "repeated")
    assert await memory.questions.begin(HERE, nonce, 51) is None
    assert await memory.questions.begin(HERE, nonce, 5) is None


@pytest.mark.parametrize("mark", ["run", "said"])
async def test_a_press_cannot_name_what_stands_beside_a_question(memory: Memory, mark: str) -> None:
    """A client knows the nonce."""
    nonce = await memory.questions.ask(HERE, "tool", ANN, ABOUT)
    await memory.questions.begin(HERE, nonce, 50)
    await memory.forgetting.erase_messages(HERE, {1}, nonce)
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.questions.check(HERE, f"{nonce}:{mark}", "clear", None)


@pytest.mark.parametrize("how", ["withdrawn", "cleared", "with a message", "memory is on again"])
async def test_an_erased_or_withdrawn_question_begins_nothing(memory: Memory, how: str) -> None:
    nonces = [await memory.questions.ask(HERE, kind, ANN, ABOUT) for kind in ("tool", "import")]
    if how == "withdrawn":
        assert await memory.questions.withdraw(HERE, nonces[0], ANN)
    elif how == "cleared":
        await clear(memory, 60)
    elif how == "memory is on again":
        await memory.switch.turn_off(HERE)
        await exchange(memory, 1)
        await memory.switch.turn_on(HERE)
    else:
        await memory.forgetting.erase_messages(HERE, {1}, "receipt")
    assert await memory.questions.begin(HERE, nonces[0], 50) is None
    stored = await memory.client.call("HVALS", memory.keys.scope(HERE).confirm)
    wanted = [] if how == "cleared" else [f"import|{ANN}|{ABOUT}".encode()]
    assert [each for each in stored if ABOUT.encode() in each] == wanted


async def test_a_question_is_stored_with_its_reply_and_not_without(memory: Memory) -> None:
    """A worker that takes the turn over, and one of an older release, find it as it was stored."""
    question = Question("again", ANN, "7,1")
    turn = await begin(memory, 1)
    await memory.mailbox.stop(HERE, 9, ANN)
    with pytest.raises(Interrupted):
        await asked_by_a_turn(memory, turn, question)
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.questions.check(HERE, question.nonce, "again", ANN)
    for each in [replace(turn, is_stopped=True)] * 2:  # the answer of the first call was lost
        await asked_by_a_turn(memory, each, question)
    assert await memory.questions.check(HERE, question.nonce, "again", None) == "7,1"
    key = memory.keys.scope(HERE).confirm
    assert await memory.client.call("HGET", key, question.nonce) == b"again|7|7,1"
    assert 3_500 < await memory.client.call("TTL", key) <= 3_600


@pytest.mark.parametrize("how", ["with a reply", "alone", "a receipt"])
async def test_questions_without_end_do_not_fill_redis(memory: Memory, how: str) -> None:
    """Each one renews the hour of those before it."""
    await put(memory, 1)
    turn, key = await take(memory), memory.keys.scope(HERE).confirm
    await memory.client.call("HSET", key, *(f"{each}" for each in range(4_000)))
    if how == "with a reply":
        await asked_by_a_turn(memory, turn, Question("again", ANN))
    elif how == "alone":
        await memory.questions.ask(HERE, "edit", ANN)
    else:
        await memory.forgetting.erase_messages(HERE, {1}, "receipt")
    assert await memory.client.call("HLEN", key) <= 2


async def test_a_turn_that_was_erased_asks_nothing_any_more(memory: Memory) -> None:
    await put(memory, 1)
    turn, question = await take(memory), Question("tool", ANN, ABOUT)
    await clear(memory, 1)
    with pytest.raises(LeaseLost):
        await asked_by_a_turn(memory, turn, question)
    with pytest.raises(NotConfirmed, match="unknown"):
        await memory.questions.check(HERE, question.nonce, "tool", ANN)


@pytest.mark.parametrize("forged", ["letter:x", "yes"])
async def test_only_a_button_of_an_open_turn_is_on_its_way(memory: Memory, forged: str) -> None:
    code, quote = Entity("pre", 0, 4, language="yes"), Quote(12, "letter:x")
    said = (
        Part("code", (code,)),
        Part("b", quote=quote),
        Part("c", buttons=((Button("d", "yes:e"),),)),
    )
    await put(memory, 1)
    await memory.turns.write_outbox(await take(memory), Outbox(Destination(7), said).to_bytes())
    assert await memory.questions.is_on_its_way(HERE, "yes:e")
    assert not await memory.questions.is_on_its_way(HERE, forged)
