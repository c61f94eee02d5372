"""People see, correct, export and stop what is remembered (W35, A21, A30)."""

from functools import partial

import orjson
import pytest

from memory.scopes.fields import State
from memory.store.keys import Scope
from tests.acceptance.buttons import (
    ask_for_wording,
    asks_to_delete,
    delete_now,
    erase,
    erase_now,
    press_now,
)
from tests.acceptance.planting import fact, plant, stored_memory, synopsis
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence, ways_in
from tests.acceptance.talk import ask_fully
from tests.servers.bot_api import Chat, FloodWait, Message, Person, Upload

CANARY = "quokka"
NO_LEARNING = {"learn": "off"}


def person(user_id: int) -> Scope:
    return Scope.of_person(user_id)


def here(chat: Chat) -> Scope:
    return Scope.of_chat(chat.id)


def listed(message: Message) -> list[str]:
    """Return the lines of a list of memories."""
    return [line for line in message.now.text.splitlines() if line.startswith("• ") and "#" in line]


async def edit_the_newest_fact(rig: Rig, anna: Person, chat: Chat, shows: Message) -> None:
    """Edit a fact, first with words that are too long; its history is then in the list."""
    question = await ask_for_wording(rig, anna, shows, "✎ 1")
    assert question.text == sentence("memory.edit_ask", text="fact number 8")
    for words, key in (("x" * 201, "edit_unfit"), ("sails\non Sundays", "edited")):
        reply = await rig.ask(anna, chat, words, reply_to=question)
        assert reply.text == sentence(f"memory.{key}")
    (edited,) = (await stored_memory(rig, person(anna.id))).facts[-1:]
    assert (edited.text, edited.replaced[0].text) == ("sails on Sundays", "fact number 8")
    shows = await ask_fully(rig, anna, chat, "/memory")
    await press_now(rig, anna, shows, "✎ 1")
    await rig.telegram.wait_for(lambda: asks_to_delete(shows))
    assert "sails on Sundays" in shows.now.text
    assert "“fact number 8”" in shows.now.text
    await rig.ask(anna, chat, "/new")
    await rig.ask(anna, chat, "Let us talk of the facts")
    assert "fact number 8" not in str(rig.requests[-1].raw)


async def what_is_new_comes_first_once(rig: Rig, anna: Person, chat: Chat) -> None:
    """Fail unless what was learned since the last look begins the list, with its buttons."""
    await plant(rig, person(anna.id), fact("has a quokka", 1, here(chat), anna.id))
    await plant(rig, here(chat), synopsis("quokkas", (1, 2), here(chat)))
    shows = await ask_fully(rig, anna, chat, "/memory")
    assert shows.text.splitlines()[2] == sentence("memory.new", count=2)
    assert listed(shows)[:2] == [
        "• 1 2 January 1970 – 3 January 1970 – quokkas (#6)",
        "• 2 has a quokka (2 January 1970, #11)",
    ]
    await delete_now(rig, anna, shows, "✎ 1")
    assert sentence("memory.new", count=1) in shows.now.text
    assert listed(shows)[0] == "• 1 has a quokka (2 January 1970, #11)"
    await delete_now(rig, anna, shows, "✎ 1")
    again = await ask_fully(rig, anna, chat, "/memory")
    assert again.text.startswith("What I know")


async def test_memory_lists_the_memories_of_this_chat_and_deletes_them(rig: Rig) -> None:
    await rig.start(**NO_LEARNING)
    (anna, chat), (ben, bens) = rig.anna(), rig.ben()
    await rig.ask(anna, chat, f"My {CANARY} is called Ruth")
    await rig.ask(anna, chat, "Let us talk of something else")
    facts = [fact(f"fact number {n}", 3, here(chat), anna.id) for n in range(9)]
    await plant(rig, person(anna.id), *facts, fact(f"has a {CANARY}", 1, here(chat), anna.id))
    state = '{"first_name":"Pat","current_goals":["peace"],"domain":{"ship":"Aurora"}}'
    await plant(rig, here(chat), synopsis("pets", (1, 2), here(chat)), State(state))
    await plant(rig, person(ben.id), fact("Ben's secret", 1, here(bens), ben.id))

    shows = await ask_fully(rig, anna, chat, "/memory")
    assert f"1 has a {CANARY} (2 January 1970, #10)" in shows.text
    assert "Messages stored here: 4" in shows.text.splitlines()[-1]
    assert shows.text.endswith(sentence("memory.is_on"))
    await press_now(rig, anna, shows, "More (2)")
    await rig.telegram.wait_for(lambda: "3 January 1970" in shows.now.text)
    assert listed(shows)[-1] == "• 12 2 January 1970 – 3 January 1970 – pets (#1)"
    assert "Ben" not in chat.transcript()
    await press_now(rig, anna, shows, "‹")
    await rig.telegram.wait_for(lambda: CANARY in shows.now.text)
    await press_now(rig, anna, shows, "✎ 1")
    await rig.telegram.wait_for(lambda: asks_to_delete(shows))
    await press_now(rig, anna, shows, "Keep it")
    await rig.telegram.wait_for(lambda: not asks_to_delete(shows))
    assert CANARY in "".join(listed(shows))
    await delete_now(rig, anna, shows, "✎ 1")
    await rig.telegram.wait_for(lambda: sentence("memory.fact_deleted") in shows.now.text)
    assert CANARY not in "".join(listed(shows))
    await rig.ask(anna, chat, f"What of my {CANARY}?")
    assert "Ruth" not in str(rig.requests[-1].messages)
    await press_now(rig, anna, shows, "Keep recalling")
    recalled = sentence("memory.recalled_again")
    await rig.telegram.wait_for(lambda: recalled in shows.now.text)
    await rig.ask(anna, chat, "/new")
    await rig.ask(anna, chat, f"And now, the {CANARY}?")
    assert "Ruth" in rig.requests[-1].messages[-1].content
    await press_now(rig, anna, shows, "More (2)")
    await rig.telegram.wait_for(lambda: "Aurora" in shows.now.text)
    await delete_now(rig, anna, shows, "✎ 10")
    await rig.telegram.wait_for(lambda: sentence("memory.state_deleted") in shows.now.text)
    assert (await stored_memory(rig, here(chat))).state == ""
    await what_is_new_comes_first_once(rig, anna, chat)
    shows = await ask_fully(rig, anna, chat, "/memory")
    await edit_the_newest_fact(rig, anna, chat, shows)


async def test_the_memories_of_a_group_stay_there_and_its_admins_delete_them(rig: Rig) -> None:
    await rig.start(**NO_LEARNING)
    (anna, annas), (ben, _), (olga, _) = rig.anna(), rig.ben(), rig.person(1003, "Olga")
    group = rig.telegram.group("Club", [anna, ben], admins=[olga])
    await rig.ask(anna, annas, "hello")
    await rig.ask(anna, group, "@ricordo_bot we sail")
    await plant(rig, person(anna.id), fact("Anna's secret", 1, here(annas), anna.id))
    sails = fact("The club sails", 1, here(group), ben.id)
    await plant(rig, here(group), sails, fact("Anna sails", 1, here(group), anna.id))
    shows = await ask_fully(rig, anna, group, "/memory")
    assert listed(shows) == [
        "• 1 Anna sails (2 January 1970, #2)",
        "• 2 The club sails (2 January 1970, #1)",
    ]
    not_yours = sentence("clear.not_yours")
    assert await press_now(rig, anna, shows, "✎ 2") == not_yours
    question = await ask_for_wording(rig, anna, shows, "✎ 1")
    reply = await rig.ask(ben, group, "Anna rows", reply_to=question)
    assert reply.text == "All right."
    assert [each.text for each in (await stored_memory(rig, here(group))).facts] == [
        "The club sails",
        "Anna sails",
    ]
    await delete_now(rig, anna, shows, "✎ 1")
    await rig.telegram.wait_for(lambda: len(listed(shows)) == 1)
    await delete_now(rig, olga, shows, "✎ 1")
    await rig.telegram.wait_for(lambda: listed(shows) == [])
    for command, key in (
        ("/memory off", "memory.only_group_admins"),
        ("/memory topics", "memory.only_group_admins"),
        ("/export", "export.only_group_admins"),
    ):
        assert (await rig.ask(ben, group, command)).text == sentence(key)
    export = await rig.ask(olga, group, "/export")
    assert "Anna's secret" not in export.file.content.decode()


async def test_after_memory_off_nothing_is_learned_until_memory_on(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna()
    await rig.ask(anna, chat, "My cat is called Mephisto")
    assert (await rig.ask(anna, chat, "/memory off")).text == sentence("memory.is_off")
    await rig.ask(anna, chat, f"My {CANARY} is called Ruth")
    await rig.ask(anna, chat, "What did I just say?")
    assert CANARY in str(rig.requests[-1].messages)
    await erase_now(rig, anna, chat, "/clear")
    await rig.ask(anna, chat, f"My {CANARY} is called Ruth")
    assert sentence("memory.is_off") in (await rig.ask(anna, chat, "/memory")).text
    assert (await rig.ask(anna, chat, "/memory on")).text == sentence("memory.turned_on")
    assert CANARY.encode() not in await rig.stored()
    assert sentence("memory.is_on") in (await rig.ask(anna, chat, "/memory")).text


async def test_export_sends_everything_stored_of_this_chat_and_nothing_else(rig: Rig) -> None:
    await rig.start(**NO_LEARNING)
    (anna, chat), (ben, bens) = rig.anna(), rig.ben()
    await rig.ask(ben, bens, f"Ben's {CANARY}")
    await rig.ask(anna, chat, "My boat is called Aurora")
    await plant(rig, person(anna.id), fact("sails", 1, here(chat), anna.id))
    await plant(rig, here(chat), synopsis("boats", (1, 2), here(chat)), State('{"goal":"peace"}'))
    await rig.send(anna, chat, "document", file=Upload(b"Whales sing.", "sea.txt", "text/plain"))
    rig.telegram.faults.add(FloodWait(1), method="sendDocument")
    reply = await rig.ask(anna, chat, "/export")
    assert reply.text == sentence("export.private")
    assert len([each for each in chat.replies if each.media]) == 1
    content = reply.file.content
    exported = orjson.loads(content)
    assert [m["text"] for m in exported["messages"]] == ["My boat is called Aurora", "All right."]
    assert exported["running_state"] == {"goal": "peace"}
    assert [(f["text"], f["sources"][0]["message"]) for f in exported["facts"]] == [("sails", 1)]
    assert [each["text"] for each in exported["synopses"]] == ["Request: boats"]
    (document,) = exported["documents"]
    assert (document["name"], document["passages"][0]["text"]) == ("sea.txt", "Whales sing.")
    assert CANARY.encode() not in content


async def test_a_message_is_forgotten_with_everything_learned_from_it(rig: Rig) -> None:
    await rig.start(**NO_LEARNING)
    (anna, chat), (ben, _) = rig.anna(), rig.ben()
    rig.script.on(CANARY, f"How nice, a {CANARY}!")
    said = await anna.say(chat, f"I keep a {CANARY}")
    await chat.wait_for_reply(after=said)
    await rig.ask(anna, chat, "I sail, too")
    rig.script.on("Which animal", f"Your {CANARY}.")
    await rig.ask(anna, chat, "Which animal do I mean?")
    await rig.wait_until_learned(6)
    both = fact(f"has a {CANARY}", 1, here(chat), anna.id)
    await plant(rig, person(anna.id), both, fact("sails", 3, here(chat), anna.id))
    summary = synopsis(f"a {CANARY}", (1, 2), here(chat))
    await plant(rig, here(chat), summary, State(f'{{"a":"{CANARY}"}}'))

    question = await ask_fully(rig, anna, chat, "/forget", reply_to=said)
    assert question.text == sentence("forget.message_ask")
    counts = {"messages": 3, "vectors": 3, "learned": 2}
    also = f"{sentence('buttons.erase_repeats')} (1)"
    await erase(rig, anna, question, "forget.message_done", by=also, **counts)
    stored = await rig.stored()
    words = [CANARY.encode(), b"I sail", b"Which animal"]
    assert [word in stored for word in words] == [False, True, True]
    await rig.ask(anna, chat, "What do I keep?")
    assert CANARY not in str(rig.requests[-1].messages)
    again = await rig.ask(anna, chat, "/forget", reply_to=said)
    assert again.text == sentence("forget.message_unknown")
    question = await ask_fully(rig, anna, chat, "/forget", reply_to=chat.replies[1])
    assert question.text == sentence("forget.answer_ask")
    await erase(rig, anna, question, "forget.message_done", messages=1, vectors=1)

    group = rig.telegram.group("Club", [anna, ben])
    annas = await anna.say(group, "@ricordo_bot I sail")
    await group.wait_for_reply(after=annas)
    refused = await rig.ask(ben, group, "/forget", reply_to=annas)
    assert refused.text == sentence("forget.message_not_yours")
    question = await ask_fully(rig, anna, group, "/forget", reply_to=annas)
    await erase(rig, anna, question, "forget.message_done", messages=2, vectors=2)


@pytest.mark.either_way
async def test_a_group_is_told_once_what_is_remembered_when_the_bot_joins(rig: Rig) -> None:
    anna, _ = await rig.start_with_anna(menus="on", **NO_LEARNING)
    group = rig.telegram.group("Club", [anna])
    await anna.kick_bot(group)
    await anna.take_bot_in(group)
    greeting = await group.wait_for_reply()
    assert greeting.text == sentence("start.group", username="ricordo_bot")
    await rig.telegram.updates.redeliver(rig.telegram.updates.history[-1])
    await rig.ask(anna, group, "@ricordo_bot hello")
    assert group.texts == [greeting.text, "All right."]
    shown = f"{sentence('start.description')}\n\n{ways_in('en')}\n\n{sentence('start.stored')}"
    calls = partial(rig.telegram.calls_to, "setMyDescription")
    await rig.telegram.wait_for(lambda: shown in [c.given.text("description") for c in calls()])
