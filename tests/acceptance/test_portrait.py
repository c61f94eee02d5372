"""`/memory` first shows one readable page of what is known, by groups."""

from dataclasses import replace

from memory.store.keys import Scope
from tests.acceptance.buttons import ask_first, asks_to_delete, erase, press, press_now
from tests.acceptance.planting import fact, plant
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.servers.bot_api import Message

CANARY, SAID = "quokka", "2 January 1970"
COUNTS = "Messages stored here"


def page(message: Message) -> list[str]:
    """Return the titles and the entries that a list shows now."""
    return [line for line in message.now.text.splitlines()[1:] if line and COUNTS not in line]


async def test_start_leads_to_one_page_of_what_is_known_with_its_sources(rig: Rig) -> None:
    await rig.start(learn="off")
    anna, chat = rig.anna()
    here, keeps = Scope.of_chat(chat.id), f"Her sister Ida keeps a {CANARY}"
    started = await rig.ask(anna, chat, "/start")
    said = await anna.say(chat, f"My sister keeps a {CANARY}, and my friend Jonas sails")
    answer = await chat.wait_for_reply(after=said)
    tea = [fact("Likes tea", 3, here, anna.id) for _ in range(16)]
    job = replace(fact("Works as a carpenter", 3, here, anna.id), changes=True)
    brief = replace(fact("Wants short answers", 3, here, anna.id), is_pinned=True)
    by_name = fact("Jonas sails", 1, here, anna.id)
    facts = [*tea, fact(keeps, 1, here, anna.id), by_name, job, brief]
    await plant(rig, Scope.of_person(anna.id), *facts)
    await press(rig, anna, started, sentence("buttons.start_memory"))
    shows = await chat.wait_for_reply(after=answer)
    assert page(shows) == [
        sentence("memory.you"),
        *(f"• {n} Likes tea ({SAID}, #{17 - n})" for n in range(1, 13)),
        *(sentence("memory.people"), f"• 13 Jonas sails ({SAID}, #18)"),
        f"• 14 {keeps} ({SAID}, #17)",
        *(sentence("memory.now"), f"• 15 Works as a carpenter ({SAID}, #19)"),
        *(sentence("memory.always"), f"• 16 📌 Wants short answers ({SAID}, #20)"),
    ]
    await press_now(rig, anna, shows, "More (4)")
    await rig.telegram.wait_for(lambda: f"• 20 Likes tea ({SAID}, #1)" in page(shows))
    found = await ask_first(rig, anna, chat, f"/memory {CANARY}")
    assert page(found) == [f"• 1 {keeps} ({SAID}, #17)"]
    await press_now(rig, anna, found, "✎ 1")
    await rig.telegram.wait_for(lambda: asks_to_delete(found))
    await press_now(rig, anna, found, sentence("buttons.show_source"))
    assert (await chat.wait_for_reply(after=found)).reply_to == said
    assert len(rig.requests) == 1  # none of this asked a model
    question = await ask_first(rig, anna, chat, "/forget", reply_to=said)
    await erase(rig, anna, question, "forget.message_done", messages=2, vectors=2, learned=2)
    assert CANARY.encode() not in await rig.stored()
    assert CANARY not in "".join(page(await ask_first(rig, anna, chat, "/memory")))
