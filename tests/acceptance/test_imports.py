"""Bringing talks along from ChatGPT: asked first, stored once over a crash, removed whole."""

import re

from tests.acceptance.buttons import delete_now, press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.test_documents import asked_last, send
from tests.bot.parsing.exports import chatgpt, zipped
from tests.servers.bot_api import Hang, Upload

BOAT = ("Sailing", "What is my boat called?", "Your boat is called Zephyr.")
BREAD = ("Bread", "How long does my rye bread bake?", "Fifty minutes at 240 degrees.")


async def test_talks_from_chatgpt_are_imported_after_a_yes_found_with_date_and_removed(
    rig: Rig,
) -> None:
    await rig.start(lease_s=4)
    anna, chat = rig.anna()
    ben, bens = rig.ben()
    group = rig.telegram.group("Club", [anna, ben])
    export = Upload(zipped(chatgpt(BOAT, BREAD)), "chatgpt.zip", "application/zip")
    how = await rig.ask(anna, chat, "/import")
    assert how.text == sentence("import.how")
    refused = await anna.send(group, "document", file=export, caption="@ricordo_bot")
    assert (await group.wait_for_reply(after=refused)).text == sentence(
        "documents.refused_in_group", name="chatgpt.zip"
    )

    listed = await rig.ask(anna, chat, "/import - My boat is a ketch.\n- I sail alone.")
    assert listed.text == sentence("import.list_preview", "import.list_ask", facts=2)
    assert await press(rig, anna, listed, "Don't import") == ""
    await shown(rig, listed, sentence("import.refused"))
    assert b"ketch" not in await rig.stored()

    preview = await send(anna, chat, export)
    assert "Conversations: 2, messages: 4, facts: 0." in preview.text
    assert "From 12 March 2024 to 13 March 2024." in preview.text
    assert b"Zephyr" not in await rig.stored()
    assert rig.requests == []

    # The bot is killed while it fetches the file for the second time.
    rig.telegram.faults.add(Hang(60), method="getFile")
    fetched = len(rig.telegram.calls_to("getFile"))
    assert await press(rig, anna, preview, "Import") == ""
    await shown(rig, preview, sentence("import.storing"))
    await rig.telegram.wait_for(lambda: len(rig.telegram.calls_to("getFile")) > fetched)
    await rig.restart()
    done = await chat.wait_for_reply(after=preview)
    known = f"{BREAD[1]} · {BOAT[1]}"
    assert done.text == sentence("import.done", "import.example", source="ChatGPT", examples=known)
    again = await send(anna, chat, export)
    assert again.text == sentence("import.known", source="ChatGPT")
    await rig.bot.wait_until(lambda: any("Zephyr" in text for text in rig.model.log.embedded))

    await rig.ask(anna, chat, "Do you know the name of my boat?")
    source = r"\[ChatGPT, imported [^,]+, 2024-03-12, Sailing\] What is my boat called\?"
    assert re.search(source, asked_last(rig))
    await rig.ask(ben, bens, "Do you know the name of my boat?")
    assert "Zephyr" not in asked_last(rig)

    listed = await rig.ask(anna, chat, "/documents")
    await delete_now(rig, anna, listed, "✕ 1")
    await shown(rig, listed, sentence("lists.deleted", "documents.none"))
    stored = await rig.stored()
    assert b"Zephyr" not in stored
    assert b"rye bread" not in stored
    await rig.ask(anna, chat, "And the bread, how long?")
    assert "Fifty" not in asked_last(rig)
