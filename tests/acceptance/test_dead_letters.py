"""A turn that keeps failing becomes a dead letter: its chat goes on, and its person may retry."""

import asyncio

import httpx2

from memory.queue.mailbox import Entry, Mailbox
from memory.store.keys import Scope
from memory.store.store import Scripts, Store
from tests.acceptance.buttons import press, shown
from tests.acceptance.pages import page
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import dialogue
from tests.servers.model_api import Reply
from tests.valkey import opened

TOKEN = "a-long-token-of-the-operator"
WORDS = "a secret that must not be shown"
GARBAGE = f'["{WORDS}", not a message'.encode()  # no version of the bot can read it


async def test_a_message_that_cannot_be_read_does_not_block_its_chat(rig: Rig) -> None:
    (anna, annas) = rig.anna()
    rig.environment["INSPECTOR_TOKEN"] = TOKEN
    await rig.start(lease_s=3)
    helped = await rig.ask(anna, annas, "/help")
    async with opened(rig.environment["REDIS_URL"]) as store:
        rooms = Store(store, rig.keys, Scripts(store), ttl_s=3600)
        entry = Entry(7, anna.id, is_alone=False, body=GARBAGE)
        await Mailbox(rooms).put(Scope.of_chat(annas.id), entry)
    apology = await annas.wait_for_reply(after=helped)
    assert apology.text == sentence("error.apology", reference=7)
    await rig.ask(anna, annas, "Hello")
    assert dialogue(rig) == ["Hello"]
    async with httpx2.AsyncClient(base_url=page(rig, ""), trust_env=False) as web:
        seen = await web.get("/inspect", headers={"Authorization": f"Bearer {TOKEN}"})
    assert '<td class="failed">JSONDecodeError</td><td><code>7</code></td>' in seen.text
    assert WORDS not in seen.text + "\n".join(rig.bot.raw)
    # The expected failures have tracebacks, which no other test may have in its log.
    rig.bot.raw[:] = [line for line in rig.bot.raw if "JSONDecodeError" not in line]


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
    await rig.bot.wait_until(lambda: [e["event"] for e in rig.bot.log].count("turn closed") == 2)

    await press(rig, anna, apology, sentence("buttons.again"))
    await shown(rig, apology, sentence("retry.begun"))
    await rig.telegram.wait_for(lambda: annas.replies[-1].text == "Here is your answer.")
    await rig.ask(anna, annas, "And now?")
    assert dialogue(rig) == [
        *("Hello", "All right.", "Deadly words", "Here is your answer.", "And now?")
    ]
    assert len(rig.requests) == 5
