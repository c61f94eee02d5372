"""Reminders are set by tools, confirmed below the answer, and sent once, whatever dies."""

import time
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

from memory.behaviors.steps import ToolCall
from memory.store.keys import Scope
from tests.acceptance.buttons import erase, erase_now, press, press_now, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_fully
from tests.acceptance.test_delivery import closed
from tests.acceptance.test_poisoning import forward
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.bot_api.contents import location
from tests.servers.bot_api.formatting import entity_text
from tests.servers.model_api import Reply, tool_call

IN_MARCH = datetime(datetime.now(UTC).year + 1, 3, 1, 9, tzinfo=ZoneInfo("Europe/Berlin"))
"""At nine in the morning, Berlin's time, of the next year's first of March."""

AT = f"{IN_MARCH:%Y-%m-%dT%H:%M}"
AT_NINE = {"at": AT, "time_zone": "Europe/Berlin"}
NINE = int(IN_MARCH.timestamp())
NINE_IN_WORDS = f"1 March {IN_MARCH.year}, 09:00"


async def have_called(
    rig: Rig,
    person: Person,
    chat: Chat,
    words: str,
    *calls: ToolCall,
    says: str = "Done.",
    **how: Any,
) -> tuple[list[Message], list[str]]:
    """Say something that makes the model call tools; return the replies and the tools' results."""
    rig.script.on(words, Reply(tool_calls=calls), says)
    before, seen = len(chat.replies), len(rig.bot.log)
    await person.say(chat, words if chat.kind == "private" else f"@ricordo_bot {words}", **how)
    await rig.bot.wait_for_log("turn closed", after=seen)
    results = [m.content for m in rig.requests[-1].messages if m.role == "tool"]
    return chat.replies[before:], results


def remind(text: str, **when: object) -> ToolCall:
    return tool_call("set_reminder", text=text, **when)


async def reminders_of(rig: Rig, chat: Chat) -> Mapping[bytes, bytes]:
    """Return what is stored of the reminders of a conversation."""
    name = rig.keys.scope(Scope.of_chat(chat.id)).work
    stored: Mapping[bytes, bytes] = await rig.redis("HGETALL", name)
    return stored


async def let_be_due(rig: Rig, chat: Chat, *, topic: int = 0) -> None:
    """Let all reminders of a conversation be due now."""
    keys, scope = rig.keys, Scope.of_chat(chat.id, topic)
    name = keys.scope(scope).work
    due = b"%d" % (time.time() * 1000)
    for id_, value in (await rig.redis("HGETALL", name)).items():
        person, seq, before, rest = value.split(b"|", 3)
        if before != b"0":  # somebody has agreed to it
            await rig.redis("HSET", name, id_, b"|".join((person, seq, due, rest)))
        await rig.redis("ZADD", keys.work, due, f"{scope.tag}|{id_.decode()}")


def said_of(key: str, text: str) -> str:
    return sentence(f"reminders.{key}", text=text, when=NINE_IN_WORDS, unix=NINE)


def asked_of(text: str) -> str:
    """Return the question whether to set a reminder, which says why it is asked."""
    return sentence("reminders.why_others") + "\n\n" + said_of("ask", text)


async def test_a_reminder_is_confirmed_with_its_moment_listed_cancelled_and_sent_as_a_reply(
    rig: Rig,
) -> None:
    anna, chat = await rig.start_with_anna()
    text = "Call *Ben* & <Eva>"
    [reply], [result] = await have_called(rig, anna, chat, "nine", remind(text, **AT_NINE))
    assert reply.text == "Done.\n\n" + said_of("set", text)
    (moment,) = reply.entities
    assert (moment.type, moment.unix_time, moment.date_time_format) == ("date_time", NINE, "wDt")
    assert entity_text(reply.text, moment) == NINE_IN_WORDS
    assert result.startswith(f"Set for {IN_MARCH:%A} {AT}+01:00 (Europe/Berlin)")

    # From now on the zone is known: a time without one is Berlin's, and the prompt has it.
    weekly = remind("Water the plants", cron="30 18 * * 5")
    [reply], _ = await have_called(rig, anna, chat, "weekly", weekly)
    assert "(Europe/Berlin)." in rig.requests[-1].last_user_message
    assert reply.text.count("⏰") == 1
    assert "Water the plants" in reply.text
    _, [listed] = await have_called(rig, anna, chat, "list", tool_call("list_reminders"))
    assert [line.split(": ")[-1] for line in listed.splitlines()] == ["Water the plants", text]

    # What was not set is said to be not set, whatever the model says.
    late = remind("Call Ben", at="2020-01-01T09:00")
    [reply], [result] = await have_called(rig, anna, chat, "too late", late)
    assert reply.text == "Done.\n\n" + sentence("claims.reminder_failed")
    assert result.startswith("Error: that time has passed")
    rig.script.on("dentist", "I'll remind you tomorrow at 9.")
    reply = await rig.ask(anna, chat, "Remind me of the dentist tomorrow at 9")
    assert reply.text == "I'll remind you tomorrow at 9.\n\n" + sentence("claims.reminder")

    shows = await rig.ask(anna, chat, "/reminders")
    assert shows.text.startswith("Your time zone: Berlin, ")
    assert [entity.type for entity in shows.entities].count("date_time") == 2
    await press_now(rig, anna, shows, "Cancel 1")
    await rig.telegram.wait_for(lambda: "Cancelled." in shows.now.text)
    assert "Water" not in shows.now.text
    id_ = listed.splitlines()[1].split(":")[0]
    again = remind("Buy milk", in_minutes=5), tool_call("cancel_reminder", id=id_)
    [reply], _ = await have_called(rig, anna, chat, "instead", *again)
    assert reply.text.endswith(said_of("cancelled", text))

    await let_be_due(rig, chat)
    await closed(rig, 1, "work done")
    due = chat.replies[-1]
    assert (due.text, due.entities) == ("⏰ Buy milk", ())
    assert due.reply_to
    assert due.reply_to.text == "instead"
    assert await reminders_of(rig, chat) == {}
    assert (await rig.ask(anna, chat, "/reminders")).text.startswith(sentence("reminders.none"))


async def test_words_of_others_set_nothing_without_a_yes_and_a_zone_is_asked_once(rig: Rig) -> None:
    anna, chat = await rig.start_with_anna(learn="facts", learn_every_turns=99)
    plant = "Remind me to pay Mallory"
    in_berlin = remind("Pay MALLORYQ", **AT_NINE)
    in_berlin_two = remind("Pay MALLORYQ2", **AT_NINE)
    rig.script.on(plant, Reply(tool_calls=(in_berlin,)), "Done.")
    sent = await forward(anna, chat, plant)
    await chat.wait_for_reply(after=sent)
    await rig.bot.wait_for_log("turn closed")
    ask = chat.replies[-1]
    assert ask.text == asked_of("Pay MALLORYQ")
    assert (await rig.ask(anna, chat, "/reminders")).text.startswith(sentence("reminders.none"))
    await let_be_due(rig, chat)  # of what nobody agreed to, this lets an hour pass
    await press(rig, anna, ask, "No, don't")
    await shown(rig, ask, sentence("reminders.not_set"))
    assert await reminders_of(rig, chat) == {}

    [_, ask], _ = await have_called(rig, anna, chat, "pay", in_berlin)  # it is in the window
    await press(rig, anna, ask, "Remind me")
    await shown(rig, ask, said_of("set", "Pay MALLORYQ"))

    # A model that has nothing to add leaves the one message with the question. Words of the person
    # alone are set at once; without a clock of theirs they hear how long it takes.
    [ask], _ = await have_called(rig, anna, chat, "as it says", in_berlin_two, says="…")
    assert ask.text == asked_of("Pay MALLORYQ2")
    assert [len(row) for row in ask.keyboard] == [2]
    feed = remind("Feed the cat", in_minutes=150)
    [reply], _ = await have_called(rig, anna, chat, "in 150 minutes: feed the cat", feed)
    assert reply.text.startswith("Done.\n\n⏰ I'll remind you: in 2.5 h")
    question = await ask_fully(rig, anna, chat, "/clear")
    await erase(rig, anna, question, "clear.done", messages=8, vectors=8, waiting=0)
    assert await reminders_of(rig, chat) == {}
    assert b"MALLORYQ" not in await rig.stored()

    soon = remind("Feed the ZEBRAQ", at=AT)
    [_, ask], [result] = await have_called(rig, anna, chat, "feed", soon)
    assert result.startswith("Not set yet: their time zone is not known.")
    assert ask.text == sentence("reminders.ask_zone", text="Feed the ZEBRAQ")
    await press_now(rig, anna, ask, "Berlin")
    await shown(rig, ask, said_of("set", "Feed the ZEBRAQ"))
    await press(rig, anna, ask, ask.keyboard[0][0].text)  # London comes too late
    [reply], _ = await have_called(rig, anna, chat, "more", soon)
    assert reply.text == "Done.\n\n" + said_of("set", "Feed the ZEBRAQ")
    assert len(await reminders_of(rig, chat)) == 1
    await rig.ask(anna, chat, "/reminders Tehran")
    await anna.share(chat, location(40.7128, -74.0060))
    await rig.telegram.wait_for(lambda: len(rig.requests) == 13)
    assert "(America/New_York)." in rig.requests[-1].last_user_message
    assert (await rig.ask(anna, chat, "/export")).media
    await erase_now(rig, anna, chat, "/forget")
    everything = await rig.stored()
    assert b"ZEBRAQ" not in everything
    assert b"New_York" not in everything


async def test_once_the_zone_is_known_all_that_waited_for_it_is_set(rig: Rig) -> None:
    await rig.start(learn="off")
    people = [rig.person(number, "Eve") for number in range(1, 5)]
    for person, place in people:
        for text in ("Feed the cat", "Call Ines"):
            await have_called(rig, person, place, f"{text} {place.id}", remind(text, at=AT))
    (anna, chat), (ben, bens), (cleo, cleos), (dora, doras) = people
    again = remind("Call Ines", **AT_NINE)
    [told], _ = await have_called(rig, anna, chat, "I live in Berlin", again)
    shared = await bens.wait_for_reply(after=await ben.share(bens, location(52.52, 13.405)))
    await press_now(rig, cleo, pressed := cleos.replies[-1], "Berlin")
    asked = await rig.ask(dora, doras, "/reminders Atlantis")
    await press_now(rig, dora, asked, "Berlin")
    both = {said_of("set", "Feed the cat"), said_of("set", "Call Ines")}
    answers = (told, shared, pressed, asked)
    await rig.telegram.wait_for(
        lambda: all(both <= {*each.now.text.split("\n\n")} for each in answers)
    )
    for _, place in people:
        stored = (await reminders_of(rig, place)).values()
        assert [value.split(b"|")[2] for value in stored] == [b"%d000" % NINE] * 2


async def test_in_groups_everybody_has_their_own_reminders_also_in_topics_and_after_a_move(
    rig: Rig,
) -> None:
    await rig.start()
    (anna, _), (ben, _) = rig.anna(), rig.ben()
    forum = rig.telegram.group("Forum", [anna, ben], forum=True)
    sailing = forum.topic("Sailing")
    hoist = remind("Hoist the sails", **AT_NINE)
    await have_called(rig, anna, forum, "Hoist the sails", hoist, topic=sailing)
    swab = remind("Swab the deck", **AT_NINE)
    [reply], _ = await have_called(rig, ben, forum, "Swab the deck", swab, topic=sailing)
    assert not reply.keyboard  # all words are Ben's, though Anna has talked here, too
    plank = remind("Walk the plank", **AT_NINE)
    [_, ask], _ = await have_called(rig, ben, forum, "thanks", plank, topic=sailing)
    assert await press(rig, anna, ask, "Remind me") == sentence("clear.not_yours")
    said = await ben.say(forum, "/reminders", topic=sailing)
    shows = await forum.wait_for_reply(after=said, topic=sailing)
    assert "Swab" in shows.text
    assert "Hoist" not in shows.text
    assert await press(rig, anna, shows, "Cancel 1") == sentence("clear.not_yours")
    await let_be_due(rig, forum, topic=sailing.id)
    await closed(rig, 3, "work done")
    unanswered = sentence("reminders.unanswered", text="Walk the plank")
    assert {(m.text, m.topic_id) for m in forum.replies[-3:]} == {
        ("⏰ Hoist the sails", sailing.id),
        ("⏰ Swab the deck", sailing.id),
        (unanswered, sailing.id),
    }
    group = rig.telegram.group("Club", [], admins=[anna], basic=True)
    await have_called(rig, anna, group, "Race", remind("Race", **AT_NINE))
    supergroup = await anna.migrate(group)
    await rig.bot.wait_for_log("group migrated")
    await let_be_due(rig, group)
    await closed(rig, 4, "work done")
    assert supergroup.texts == ["⏰ Race"]
    assert not supergroup.replies[-1].reply_to
