"""When a service fails, nothing is lost, no internals are shown, and the bot recovers (A23)."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.acceptance.buttons import press, shown
from tests.acceptance.pages import page, readiness, wait_until_ready
from tests.acceptance.rig import Rig, open_rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import dialogue
from tests.servers.model_api import ApiError, Break, Reply, server_error
from tests.valkey import ValkeyServer


@pytest.fixture
def lasting_valkey(tmp_path: Path) -> ValkeyServer:
    """Give a server that keeps its data when it is killed; not started yet."""
    return ValkeyServer(tmp_path / "valkey", "--appendonly", "yes", "--appendfsync", "always")


@pytest.fixture
async def lasting_rig(lasting_valkey: ValkeyServer, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig whose Redis can be killed and started again."""
    with lasting_valkey:
        async with open_rig(lasting_valkey.url, tmp_path, "webhook") as opened:
            yield opened


async def test_a23_a_failing_model_is_answered_with_neutral_words_and_a_reference(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    for fault in (server_error(), Break.HTML):
        seen = len(rig.bot.log)
        rig.model.faults.add(fault, times=None)
        reply = await rig.ask(anna, chat, "Our boat is called Aurora")
        rig.model.faults.clear()
        reported = await rig.bot.wait_for_log("no answer", after=seen)
        assert reply.text == sentence("error.turn", reference=reported["reference"])
    reply = await rig.ask(anna, chat, "What is it called?")
    assert reply.text == "All right."
    assert rig.requests[-1].asked.startswith("Our boat is called Aurora")


@pytest.mark.either_way
async def test_a_fault_of_the_account_is_nobodys_doing_and_admins_hear_what_to_do(rig: Rig) -> None:
    refusal = ApiError(401, "Incorrect API key", code="invalid_api_key")
    ada, adas = await rig.start_with_ada()
    await rig.ask(ada, adas, "/start")
    anna, chat = rig.anna()
    rig.model.faults.add(refusal, times=None)
    reply = await rig.ask(anna, chat, "Our boat is called Aurora")
    reported = await rig.bot.wait_for_log("no answer")
    assert reply.text == sentence("error.account", reference=reported["reference"])
    assert reply.keyboard == ()
    reason = "401 invalid_api_key"
    told = sentence("notices.answers_key", reason=reason, look_at="OPENAI_API_KEY")
    await rig.telegram.wait_for(lambda: told in adas.texts)
    rig.model.faults.clear()


async def test_a23_an_outage_of_redis_loses_nothing(
    lasting_rig: Rig, lasting_valkey: ValkeyServer
) -> None:
    rig = lasting_rig
    await rig.start(lease_s=4)
    (anna, annas), (ben, bens) = rig.anna(), rig.ben()
    gate = rig.script.hold("slow", "Slowly.")
    await rig.ask(anna, annas, "Our boat is called Aurora")
    bens_words = await rig.say_until_asked(ben, bens, "Be slow")
    lasting_valkey.kill()
    annas_words = await anna.say(annas, "What is it called?")
    await rig.bot.wait_for_log("update refused")
    status, checks = await readiness(rig)
    assert (status, checks["redis"]) == (503, "unreachable")
    gate.set()
    await rig.bot.wait_for_log("turn interrupted")

    lasting_valkey.start()
    assert (await annas.wait_for_reply(after=annas_words)).text == "All right."
    assert (await bens.wait_for_reply(after=bens_words)).text == "Slowly."
    await wait_until_ready(rig)
    await rig.ask(anna, annas, "Thank you")
    assert dialogue(rig) == [
        "Our boat is called Aurora",
        "All right.",
        "What is it called?",
        "All right.",
        "Thank you",
    ]
    assert (len(annas.replies), len(bens.replies)) == (3, 1)


@pytest.mark.either_way
async def test_a23_the_bot_waits_for_telegram_at_the_start(rig: Rig) -> None:
    anna, chat = rig.anna()
    said = await anna.say(chat, "Are you there?")
    await rig.telegram.stop()
    await rig.bot.start(until="telegram call failed")
    assert rig.bot.lines("telegram call failed", look_at="TELEGRAM_API_URL")
    assert await readiness(rig) == (503, {"redis": "ok", "telegram": "not reached: Unreachable"})
    await rig.telegram.start()
    assert (await chat.wait_for_reply(after=said)).text == "All right."
    await wait_until_ready(rig)
    async with httpx2.AsyncClient(trust_env=False) as web:
        assert (await web.get(page(rig, "/readyz"))).json()["last_update_s_ago"] < 600


@pytest.mark.either_way
async def test_a23_a_turn_in_progress_is_finished_before_the_process_stops(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    gate = rig.script.hold("slow", "Slowly.")
    await rig.say_until_asked(anna, chat, "Be slow")
    stopping = asyncio.create_task(rig.bot.stop())
    await rig.bot.wait_for_log("stopping")
    await anna.say(chat, "And now?")
    gate.set()
    assert await stopping == 0
    assert chat.texts == ["Slowly."]
    await rig.bot.start()
    await rig.telegram.wait_for(lambda: len(chat.replies) == 2)
    assert dialogue(rig) == ["Be slow", "Slowly.", "And now?"]


async def test_a_message_that_crashes_the_process_becomes_a_dead_letter_and_can_be_retried(
    rig: Rig,
) -> None:
    (anna, annas) = rig.anna()
    await rig.start()
    deadly = Reply("Never said.", gate=asyncio.Event())
    rig.script.on("Deadly", deadly, deadly, "Here is your answer.")
    said = await anna.say(annas, "Deadly words")
    for times in (1, 2):
        await rig.wait_until_asked("Deadly", times=times)
        await rig.restart()
    turn = str(rig.telegram.updates.history[-1].id)
    apology = await annas.wait_for_reply(after=said)
    assert apology.text == sentence("error.apology", reference=turn)
    await rig.ask(anna, annas, "Hello")
    assert dialogue(rig) == ["Hello"]
    # While the lease is held under which the turn was closed, its letter stays where it is.
    await rig.bot.wait_until(lambda: len(rig.bot.lines("turn closed")) == 2)

    await press(rig, anna, apology, sentence("buttons.again"))
    await shown(rig, apology, sentence("retry.begun"))
    await rig.telegram.wait_for(lambda: annas.replies[-1].text == "Here is your answer.")
    await rig.ask(anna, annas, "And now?")
    wanted = ["Hello", "All right.", "Deadly words", "Here is your answer.", "And now?"]
    assert dialogue(rig) == wanted
    assert len(rig.requests) == 5
