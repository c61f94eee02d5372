"""`/why` and 👎 list the memories that an answer used, and lead to where they come from."""

from tests.acceptance.buttons import asks_to_delete, delete_now, press_now
from tests.acceptance.memory_model import main_requests, remember_with
from tests.acceptance.rig import US, Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully
from tests.servers.bot_api import Chat, Message, Person, chats

TOLD = "My sister is called Ida"
MESSAGE = f"“{TOLD}” – same words"


def quoted(message: Message) -> str:
    """Return the passage that a message quotes."""
    assert isinstance(message, chats.Message)
    return message.quote.text if message.quote else ""


def lines(message: Message) -> list[str]:
    """Return the entries of a list as it is now, without their dates."""
    entries = [line for line in message.now.text.splitlines() if line.startswith("• ")]
    return [entry.rpartition(" (")[0] or entry for entry in entries]


def numbered(message: Message, entry: str) -> int:
    (number,) = (int(line.split()[1]) for line in lines(message) if entry in line)
    return number


async def next_reply(rig: Rig, chat: Chat, before: int) -> Message:
    """Return the reply that follows `before` replies."""
    await rig.telegram.wait_for(lambda: len(chat.replies) > before)
    return chat.replies[before]


async def source(rig: Rig, person: Person, chat: Chat, entry: str) -> Message:
    """Press the button of an entry of the newest list; return what shows where it comes from."""
    why = next(each for each in reversed(chat.replies) if "I had this in mind" in each.text)
    before = len(chat.replies)
    await press_now(rig, person, why, f"↗ {numbered(why, entry)}")
    return await next_reply(rig, chat, before)


async def test_why_lists_what_the_prompt_had_and_its_buttons_show_and_delete_it(rig: Rig) -> None:
    remember_with(rig)
    await rig.start(learn="state,facts", learn_every_turns=1, window_messages=2)
    anna, chat = rig.anna()
    assert (await rig.ask(anna, chat, "/why")).text == sentence("why.nothing_yet")
    for text in (TOLD, "Is it raining?", "Sing a song", "What is my sister called?"):
        await ask_and_learn(rig, anna, chat, text)
    told = next(each for each in chat.messages if each.text == TOLD)
    answer = chat.replies[-1]
    prompt = main_requests(rig)[-1].memory
    assert "Their sister is Ida." in prompt
    assert "Anna: My sister is called Ida" in prompt

    assert sentence("memory.fresh") not in (await ask_fully(rig, anna, chat, "/memory")).text
    why = await ask_fully(rig, anna, chat, "/why")
    assert numbered(why, "Their sister is Ida. – you told me")
    assert len(lines(why)) == 3
    await press_now(rig, anna, why, "More (")
    await rig.telegram.wait_for(lambda: "Summary – First name: Anna" in lines(why)[-1])
    assert not any(sentence(key) in why.now.text for key in ("memory.other", "why.used_from"))
    await press_now(rig, anna, why, "‹ 1")
    await rig.telegram.wait_for(lambda: "Ida" in lines(why)[0])
    sources = [await source(rig, anna, chat, entry) for entry in ("Their sister is Ida.", MESSAGE)]
    for shows in sources:
        assert (shows.reply_to, quoted(shows)) == (told, told.text)
        assert shows.text.startswith("This is where it comes from")
    assert len(main_requests(rig)) == 4  # nothing of this asks the model

    fact, message = sources
    await delete_now(rig, anna, message, "Wrong")
    assert MESSAGE not in " ".join(lines(message))
    before = len(chat.replies)
    await press_now(rig, anna, fact, "Wrong")
    await rig.telegram.wait_for(lambda: asks_to_delete(fact))
    await press_now(rig, anna, fact, sentence("buttons.edit"))
    question = await next_reply(rig, chat, before)
    await rig.ask(anna, chat, "My sister is Ida Maria.", reply_to=question)
    await ask_fully(rig, anna, chat, "/why")
    why = chat.replies[-1]
    assert numbered(why, "My sister is Ida Maria. – you told me")

    shows = await source(rig, anna, chat, "Ida Maria.")
    await delete_now(rig, anna, shows, "Wrong")
    assert "Ida" not in " ".join(lines(shows))
    await ask_and_learn(rig, anna, chat, "Once more: what is she called?")
    assert "Ida" not in main_requests(rig)[-1].memory

    before = len(chat.replies)
    await anna.react(answer, "👍")
    await anna.react(told, "👎")  # it is no answer
    await anna.react(answer, "👎")
    assert "Ida" not in " ".join(lines(await next_reply(rig, chat, before)))
    await ask_and_learn(rig, anna, chat, "Good night")
    _, summary, *links = (await ask_fully(rig, anna, chat, "/why")).text.split("\n\n")
    assert (summary.startswith("• 1 Summary – "), links) == (True, [])


async def test_a_dislike_finds_its_topic_and_in_groups_counts_only_from_the_asker(rig: Rig) -> None:
    remember_with(rig)
    await rig.start(learn="facts", learn_every_turns=1, window_messages=2)
    (anna, chat), ben = rig.anna(), rig.ben()[0]
    chat.has_private_topics = True
    topic = await anna.open_topic(chat, "Boats")
    await ask_and_learn(rig, anna, chat, "My boat is called SECRETQ", topic=topic)
    answer = await ask_and_learn(rig, anna, chat, "Hm", topic=topic)
    await anna.react(answer, "👎")
    why = await next_reply(rig, chat, 2)
    assert (why.topic_id, lines(why)) == (topic.id, ["• 1 Their boat is SECRETQ. – you told me"])
    await press_now(rig, anna, why, "↗ 1")
    assert quoted(await next_reply(rig, chat, 3)) == "My boat is called SECRETQ"
    elsewhere = await ask_fully(rig, anna, chat, "What is my boat called?")
    assert "SECRETQ" in main_requests(rig)[-1].memory
    why = await ask_fully(rig, anna, chat, "/why")
    await press_now(rig, anna, why, "↗ 1")
    gone = await next_reply(rig, chat, 6)
    assert (elsewhere.topic_id, gone.topic_id, gone.reply_to) == (0, 0, None)
    assert gone.text.endswith("“Their boat is SECRETQ.”")

    group = rig.telegram.group("Club", [ben], admins=[anna], bot_is_admin=True)
    await ask_and_learn(rig, anna, group, f"{US} My dog is called Rex")
    answer = await ask_and_learn(rig, anna, group, f"{US} What is my boat called?")
    await ben.react(answer, "👎")
    await ben.react(answer)
    await anna.react(answer, "👎")
    why = await next_reply(rig, group, 2)
    assert why.reply_to == answer
    assert "said here" in lines(why)[0]
    assert "SECRETQ" not in why.text
    assert len(group.replies) == 3
