"""One person cannot occupy all slots of the worker, all readers of files or a group."""

import asyncio
from functools import partial

import pytest

from bot.turn.permits import MAX_TURNS_PER_PERSON
from tests.acceptance.rig import US, Rig
from tests.bot.parsing.pdfs import slow_pdf
from tests.servers.bot_api import Chat, Person, Topic, Upload
from tests.servers.model_api import Reply

CHANNELS = "in the name of channels"
SLOW = Upload(slow_pdf(pages=1, operators=6_000), "slow.pdf", "application/pdf")


def forum_of(rig: Rig, person: Person, topics: int) -> tuple[Chat, list[Topic]]:
    forum = rig.telegram.group("Mallory's", [person], forum=True)
    return forum, [forum.topic(f"Topic {number}") for number in range(topics)]


@pytest.mark.parametrize("how", ["in person", CHANNELS, "by commands"])
async def test_slow_answers_to_one_person_leave_slots_for_others(how: str, rig: Rig) -> None:
    """A command may ask a model for the zone of a place."""
    await rig.start(slots=12)
    most = MAX_TURNS_PER_PERSON * (2 if how == CHANNELS else 1)
    mallory, _ = rig.person(1666, "Mallory")
    forum, topics = forum_of(rig, mallory, 12)
    (ben, bens), gate = rig.ben(), asyncio.Event()
    rig.script.on("slowly", *[Reply(f"Slow {n}.", gate=gate) for n in range(12)])
    for topic in topics:
        text = "/reminders slowly" if how == "by commands" else f"{US} slowly"
        channel = rig.telegram.channel("Mine", [mallory]) if how == CHANNELS else None
        await mallory.say(forum, text, topic=topic, speaking_as=channel)
    await rig.wait_until_asked("slowly", times=most)
    await rig.ask(ben, bens, "are you there?")
    assert sum("slowly" in request.asked for request in rig.requests) == most
    gate.set()
    for topic in topics:
        await forum.wait_for_reply(topic=topic)


@pytest.mark.parametrize(("people", "slots"), [(1, 2), (4, 3)], ids=["of one", "of many"])
async def test_slow_files_leave_slots_for_others(rig: Rig, people: int, slots: int) -> None:
    await rig.start(slots=slots)
    senders = [rig.person(2000 + number, f"Person {number}")[0] for number in range(people)]
    ben, bens = rig.ben()
    places = [(sender, *forum_of(rig, sender, 4 // people)) for sender in senders]
    for sender, forum, topics in places:
        for topic in topics:
            await sender.send(forum, "document", file=SLOW, caption=US, topic=topic)
    await rig.bot.wait_until(lambda: len(rig.bot.lines("update")) >= 4)
    await rig.ask(ben, bens, "are you there?")
    assert sum(len(forum.replies) for _, forum, _ in places) <= 2
    for _, forum, topics in places:
        for topic in topics:
            await forum.wait_for_reply(topic=topic)


@pytest.mark.trial
async def test_a_flood_of_one_member_leaves_messages_for_other_topics_of_a_group(rig: Rig) -> None:
    """Telegram takes 20 messages a minute in a group, for all its topics.

    Only the first commands and one notice use these messages up, whenever they are sent.
    """
    await rig.start(sends_per_second=30)
    (ben, _), (mallory, _) = rig.ben(), rig.person(1666, "Mallory")
    forum = rig.telegram.group("Club", [ben, mallory], forum=True)
    topics, bens = [forum.topic(f"Topic {number}") for number in range(24)], forum.topic("Ben's")
    for topic in topics:
        await mallory.say(forum, "/help", topic=topic)
    silenced = partial(rig.bot.lines, "quota used up", verdict="silenced")
    await rig.bot.wait_until(lambda: len(silenced()) >= 24 - 8)
    await ben.say(forum, f"{US} are you there?", topic=bens)
    await rig.wait_until_asked("are you there?")
    assert len(forum.replies) <= 8
    await rig.bot.kill()  # or it would wait until Telegram takes the rest
