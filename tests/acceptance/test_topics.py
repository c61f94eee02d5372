"""A topic in a private chat that Telegram named by itself is named after what was said there."""

from tests.acceptance.asking import ask_and_learn
from tests.acceptance.memory_model import remember_with
from tests.acceptance.rig import Rig
from tests.servers.bot_api import Refuse

NAME = "editForumTopic"


async def test_a_topic_named_by_telegram_is_named_after_its_first_session_and_no_other(
    webhook_rig: Rig,
) -> None:
    rig = webhook_rig
    remember_with(rig)
    await rig.start(learn="synopses")
    anna, chat = rig.anna()
    chat.has_private_topics = True
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
    assert [chat.topics[each.id].name for each in (unnamed, named, renamed, refused)] == [
        *(title, "Taxes", "Garden", "New chat")
    ]
