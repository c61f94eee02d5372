"""A message that the model's server refuses is left out from then on and blocks nothing."""

import orjson
import pytest

from bot.language.catalogue import Catalogue
from tests.acceptance.buttons import press
from tests.acceptance.rig import KEY, Rig
from tests.acceptance.sentences import sentence, sentence_in
from tests.acceptance.talk import ask_fully
from tests.servers.bot_api import Chat, Person
from tests.servers.model_api import Dialect

CATALOGUE = Catalogue()
FILTER = Dialect(api_key=KEY, filtered=frozenset({"badword"}))


async def export(rig: Rig, person: Person, chat: Chat) -> list[dict[str, object]]:
    """Return the messages of a person's export."""
    reply = await rig.ask(person, chat, "/export")
    messages: list[dict[str, object]] = orjson.loads(reply.file.content)["messages"]
    return messages


@pytest.mark.either_way
async def test_a_message_that_a_filter_refuses_blocks_nothing_and_is_marked(rig: Rig) -> None:
    rig.model.dialect = FILTER
    anna, chat = await rig.start_with_anna()
    await rig.ask(anna, chat, "Our boat is called Aurora")
    reply = await rig.ask(anna, chat, "badword please")
    assert reply.text == sentence("error.refused")
    reported = await rig.bot.wait_for_log("message refused")
    assert (reported["status"], reported["code"]) == (400, "content_filter")
    await rig.bot.stop()
    await rig.bot.start()
    for text in ("Hello again", "What is our badge worth?"):
        assert (await rig.ask(anna, chat, text)).text == "All right."
    assert "Aurora" in rig.requests[-1].messages[1].content
    assert "badword" not in "\n".join(m.content for ask in rig.requests for m in ask.messages)
    await rig.wait_until_learned(4)
    # It may have been searched for before it was refused, as a short question together with the
    # one before. It is not embedded to be stored.
    searched = {"badword please", "Our boat is called Aurora\nbadword please"}
    assert {text for text in rig.model.log.embedded if "badword" in text} <= searched
    assert "left out – “badword please”" in (await rig.ask(anna, chat, "/memory")).text


@pytest.mark.either_way
async def test_refused_messages_are_in_the_export_and_are_erased_by_their_button(rig: Rig) -> None:
    rig.model.dialect = FILTER
    await rig.start()
    ben, chat = rig.ben("de")
    reply = await rig.ask(ben, chat, "badword please")
    assert reply.text == sentence_in("de", "error.refused")
    exported = await export(rig, ben, chat)
    assert [(m["text"], m["refused"]) for m in exported] == [("badword please", True)]
    page = await ask_fully(rig, ben, chat, "/memory")
    await press(rig, ben, page, "✎ 1")
    delete = CATALOGUE.text("de", "buttons.delete")
    await rig.telegram.wait_for(lambda: delete in str(chat.replies[-1].keyboard))
    await press(rig, ben, chat.replies[-1], delete)
    await rig.telegram.wait_for(lambda: "badword" not in chat.replies[-1].text)
    assert await export(rig, ben, chat) == []
