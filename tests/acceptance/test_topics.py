"""Topics of a private chat: Telegram names some, the bot renames them, and facts move there."""

from bot.features.topics.feature import HEADING
from tests.acceptance.buttons import asks_to_delete, erase_now, press_now
from tests.acceptance.memory_model import main_requests, remember_with
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.talk import ask_and_learn, ask_fully
from tests.servers.bot_api import Chat, Message, Person, Refuse, Topic
from tests.servers.model_api import Reply, tool_call

NAME = "editForumTopic"
CHANGE = sentence("buttons.change_entry")


async def started(rig: Rig, **learning: object) -> tuple[Person, Chat]:
    """Start the bot; return a person and her private chat, which has topics."""
    remember_with(rig)
    anna, chat = await rig.start_with_anna(**learning)
    chat.has_private_topics = True
    return anna, chat


async def test_only_a_topic_named_by_telegram_is_named_after_its_first_session(rig: Rig) -> None:
    anna, chat = await started(rig, learn="synopses")
    unnamed = await anna.open_topic(chat, "New chat", is_name_implicit=True)
    named = await anna.open_topic(chat, "Taxes")
    renamed = await anna.open_topic(chat, "New chat", is_name_implicit=True)
    renamed = await anna.rename_topic(chat, renamed, "Garden")
    refused = await anna.open_topic(chat, "New chat", is_name_implicit=True)
    for topic in (unnamed, named, renamed, refused):
        if topic is refused:
            rig.telegram.faults.add(Refuse(400, "Bad Request: TOPIC_CLOSED"), method=NAME)
        for text in ("Plan a trip to Genoa in May, please.", "/new"):
            await ask_and_learn(rig, anna, chat, text, topic=topic)
    await ask_and_learn(rig, anna, chat, "And now to Venice", topic=unnamed)
    await ask_and_learn(rig, anna, chat, "/new", topic=unnamed)
    calls = [
        (call.given.integer("message_thread_id"), call.given.text("name"))
        for call in rig.telegram.calls_to(NAME)
    ]
    title = "Plan a trip to Genoa in May, please"
    assert calls == [(unnamed.id, title), (refused.id, title)]
    wanted = [title, "Taxes", "Garden", "New chat"]
    assert [chat.topics[each.id].name for each in (unnamed, named, renamed, refused)] == wanted


async def test_a_fact_moves_to_its_topic_alone_and_back_by_a_button(rig: Rig) -> None:
    anna, chat = await started(rig, learn="facts", learn_every_turns=1)
    sailing = await anna.open_topic(chat, "Sailing")
    taxes = await anna.open_topic(chat, "Taxes")

    async def prompts() -> list[bool]:
        """Return whether the model is told of the boat, in each topic."""
        for topic in (sailing, taxes):
            await ask_and_learn(rig, anna, chat, "Is it raining?", topic=topic)
        return ["Aurora" in request.last_user_message for request in main_requests(rig)[-2:]]

    async def move(shows: Message, label: str, outcome: str) -> None:
        await press_now(rig, anna, shows, f"{CHANGE} 1")
        await rig.telegram.wait_for(lambda: asks_to_delete(shows))
        assert await press_now(rig, anna, shows, sentence(label)) == ""
        said = sentence(outcome).partition(" ")[0]
        await rig.telegram.wait_for(lambda: said in shows.now.text)

    await ask_and_learn(rig, anna, chat, "My boat is called Aurora", topic=sailing)
    assert await prompts() == [True, True]
    elsewhere = await ask_fully(rig, anna, chat, "/memory", topic=taxes)
    await press_now(rig, anna, elsewhere, f"{CHANGE} 1")
    await rig.telegram.wait_for(lambda: asks_to_delete(elsewhere))
    labels = elsewhere.now.labels
    assert sentence("buttons.only_topic") not in labels
    shows = await ask_fully(rig, anna, chat, "/memory", topic=sailing)
    await move(shows, "buttons.only_topic", "memory.moved_here")
    assert await prompts() == [True, False]
    why = await ask_fully(rig, anna, chat, "/why", topic=sailing)
    assert "Aurora" in why.text
    await move(shows, "buttons.everywhere", "memory.moved_everywhere")
    assert await prompts() == [True, True]


async def test_topics_recall_each_other_only_while_the_person_wants_it(rig: Rig) -> None:
    anna, chat = await started(rig, learn="synopses")
    sailing = await anna.open_topic(chat, "Sailing")
    taxes = await anna.open_topic(chat, "Taxes")

    async def ask(text: str, topic: Topic = taxes) -> str:
        return (await ask_and_learn(rig, anna, chat, text, topic=topic)).text

    async def command(text: str, topic: Topic = taxes) -> str:
        return (await ask_fully(rig, anna, chat, text, topic=topic)).text

    async def memory() -> str:
        await ask("Where does the Aurora lie?")
        return main_requests(rig)[-1].memory

    await ask("The Aurora lies in the harbour of Genoa", sailing)
    assert await memory() == ""
    assert sentence("topics.off") in await command("/memory")
    assert await command("/memory topics") == sentence("topics.on")
    assert sentence("topics.on") in await command("/memory", sailing)
    told = await memory()
    assert told.splitlines()[0] == HEADING
    assert "another topic] Anna: The Aurora lies in the harbour of Genoa" in told
    assert "“The Aurora lies in the harbour of Genoa” – from another topic" in await command("/why")

    search = tool_call("search_memory", query="Aurora harbour")
    rig.script.on("Look it up", Reply(tool_calls=(search,)), "It lies in Genoa.")
    await ask("Look it up.")
    assert "another topic] Anna: The Aurora lies" in main_requests(rig)[-1].messages[-1].content

    await erase_now(rig, anna, chat, "/clear", topic=sailing)
    assert HEADING not in await memory()
    assert await command("/memory topics off") == sentence("topics.off")
