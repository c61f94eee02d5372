"""The verdict finds each kind of error when a day without a fault is falsified afterwards."""

from collections.abc import AsyncIterator
from dataclasses import replace
from random import Random

import pytest
import pytest_asyncio

from tests.acceptance.sentences import sentence
from tests.lab.faults.scene import Scene, Stage, open_scene
from tests.lab.faults.verdict import Allowance, Verdict, judge
from tests.servers.bot_api import Chat, Message
from tests.valkey import opened

pytestmark = [
    pytest.mark.trial,  # only trials are judged
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.xdist_group("verdict"),
]
NOTHING = Allowance(frozenset(), 0)
APOLOGY = sentence("error.turn", reference="12ab")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def day(launcher: None, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Scene]:  # noqa: ARG001
    """Yield a day that is over, with one answer for each text."""
    async with open_scene(Stage(), tmp_path_factory.mktemp("day"), Random(1)) as scene:
        for _ in range(2):
            await scene.day.say_goodbye()
            await scene.settle(10)
        await scene.bots[0].stop()
        yield scene


@pytest_asyncio.fixture(loop_scope="module")
async def scene(day: Scene) -> AsyncIterator[Scene]:
    """Yield the day, and restore afterwards what a test has falsified."""
    chat = day.day.chats[0]
    keys, shown = day.keys_of(chat), dict(chat._messages)
    async with opened(day.redis.url) as store:
        log = await store.call("DUMP", keys.log)
        yield day
        await store.pipeline([("RESTORE", keys.log, 0, log, "REPLACE"), ("DEL", keys.dead_letters)])
    chat._messages = shown
    for noted in (day.missed, day.met, day.doubts, day.hit, day.safe):
        noted.clear()


def replies(scene: Scene) -> tuple[Chat, Message, Message]:
    """Return a private chat and its two replies."""
    chat = scene.day.chats[0]
    first, second = chat.replies
    return chat, first, second


async def test_a_day_without_a_fault_has_no_complaint(scene: Scene) -> None:
    texts = len(scene.day.lines)
    assert await judge(scene, NOTHING) == Verdict(0, texts, texts, 0, 0, 0, 0, 0, 0, ())


async def test_a_moment_that_never_came_is_a_complaint(scene: Scene) -> None:
    scene.missed.add("asking")
    verdict = await judge(scene, NOTHING)
    assert verdict.complaints == ("it never struck at the moment 'asking'",)
    scene.met.add("asking")
    assert (await judge(scene, NOTHING)).complaints == ()


async def test_a_reply_shown_twice_is_a_complaint_unless_it_was_in_doubt(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    chat.add(replace(first, id=0))
    verdict = await judge(scene, NOTHING)
    assert (verdict.doubled, verdict.in_doubt) == (1, 0)
    assert verdict.complaints == ("m000 was answered more than once",)
    scene.doubts[chat.id, first.text] += 1
    verdict = await judge(scene, NOTHING)
    assert (verdict.doubled, verdict.in_doubt, verdict.complaints) == (1, 1, ())
    assert verdict.answered == verdict.updates - 1


async def test_a_text_that_two_turns_answered_is_a_complaint(scene: Scene) -> None:
    chat, first, second = replies(scene)
    chat.change(replace(second, text=f"{first.text} {second.text}"))
    assert "m000 was answered more than once" in (await judge(scene, NOTHING)).complaints


async def test_a_reply_that_was_sent_and_is_not_shown_is_undelivered(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    chat.remove(first)
    verdict = await judge(scene, NOTHING)
    assert (verdict.undelivered, verdict.lost) == (1, 0)
    forged = "what answers ['m000'] is not as it is remembered"
    too_many = "1 turns were not answered, 0 are allowed"
    assert verdict.complaints == ("m000 was undelivered", too_many, forged)
    allowed = Allowance(frozenset({"undelivered"}), 1)
    assert (await judge(scene, allowed)).complaints == (forged,)


async def test_turns_beyond_the_allowance_must_have_been_hit(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    chat.remove(first)
    allowed = Allowance(frozenset({"undelivered"}), 0)
    too_many = "1 turns were not answered, 0 are allowed"
    assert too_many in (await judge(scene, allowed)).complaints
    scene.hit.add("m000")
    assert too_many not in (await judge(scene, allowed)).complaints


async def test_a_text_after_the_last_fault_must_be_answered(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    chat.remove(first)
    allowed = Allowance(frozenset({"undelivered"}), 1)
    safe = "m000 was not answered, although it was written after the last fault"
    assert safe not in (await judge(scene, allowed)).complaints
    scene.safe.add("m000")
    assert safe in (await judge(scene, allowed)).complaints


async def test_an_apology_in_addition_to_an_answer_is_a_complaint(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    for count in (1, 2):
        chat.add(replace(first, id=0, text=APOLOGY))
        complaint = f"{chat.id} has {count} apologies, 0 turns without an answer"
        assert (await judge(scene, NOTHING)).complaints == (complaint,)


async def test_a_message_that_is_not_part_of_an_answer_is_a_complaint(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    for text in ("draft of nothing", "a draft for m000", "Heard m001."):
        chat.add(replace(first, id=0, text=text))
        complaint = f"{chat.id} shows what answers nothing: {text!r}"
        assert complaint in (await judge(scene, NOTHING)).complaints


async def test_each_turn_that_was_set_aside_needs_an_apology_of_its_own(scene: Scene) -> None:
    chat, first, second = replies(scene)
    keys = scene.keys_of(chat)
    async with opened(scene.redis.url) as store:
        letters = {"t1": "1|Error|1001", "t1:7": "m000", "t2": "2|Error|1001", "t2:8": "m005"}
        flat = [text for pair in letters.items() for text in pair]
        await store.pipeline([("DEL", keys.log), ("HSET", keys.dead_letters, *flat)])
    chat.change(replace(first, text=APOLOGY))
    chat.remove(second)
    verdict = await judge(scene, Allowance(frozenset({"apologised"}), 1))
    assert (verdict.apologised, verdict.lost) == (2, 0)
    assert verdict.complaints == (
        "2 turns were not answered, 1 are allowed",
        f"{chat.id} has 1 apologies, 2 turns without an answer",
    )


async def test_replies_in_the_wrong_order_are_a_complaint(scene: Scene) -> None:
    chat, first, second = replies(scene)
    chat.change(replace(first, text=second.text))
    chat.change(replace(second, text=first.text))
    verdict = await judge(scene, NOTHING)
    assert verdict.out_of_order == 1
    assert verdict.complaints[0] == "m005 came before m000"


async def test_a_text_that_is_neither_answered_nor_remembered_is_lost(scene: Scene) -> None:
    chat, first, _ = replies(scene)
    async with opened(scene.redis.url) as store:
        log = scene.keys_of(chat).log
        entries = await store.call("XRANGE", log, "-", "+")
        await store.call("XDEL", log, *(entry for entry, _ in entries[:2]))
    assert "m000 was answered and is not remembered" in (await judge(scene, NOTHING)).complaints
    chat.remove(first)
    verdict = await judge(scene, NOTHING)
    assert verdict.lost == 1
    assert "m000 was lost" in verdict.complaints
