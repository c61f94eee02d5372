"""Files of tools and drawn pictures arrive once, with the answer."""

import sys
from pathlib import Path

import orjson

from tests.acceptance.bot_process import ROOT
from tests.acceptance.operator_parts import chart
from tests.acceptance.rig import Rig
from tests.acceptance.talk import said
from tests.acceptance.test_delivery import closed
from tests.servers.bot_api import Chat, Hang
from tests.servers.model_api import PICTURE, Dialect, Reply, is_image, server_error, tool_call

TABLE = b"ship,berth\nAlbatross,B-17\n"
LONG = "Here they are. " * 100


def shown(chat: Chat) -> list[tuple[str, str]]:
    """Return the kind of file and the text of each message of the bot."""
    return [(each.media.kind if each.media else "", each.text) for each in chat.replies]


async def test_files_of_a_tool_arrive_once_through_a_crash_between_parts(rig: Rig) -> None:
    await rig.start(behaviors="tests.acceptance.operator_parts:Painter", coalesce_s=0)
    anna, chat = rig.anna()
    draws = Reply(tool_calls=(tool_call("draw_berths"),))
    rig.script.on("Draw", draws, LONG, draws, "Here they are.")
    silence = rig.telegram.faults.add(Hang(30), method="sendPhoto")
    await anna.say(chat, "Draw the berths")
    await rig.telegram.wait_for(lambda: silence.left == 0)
    assert chart() in await rig.stored()
    await rig.restart()
    assert (await closed(rig, 1))["parts"] == 3
    assert shown(chat) == [("document", ""), ("photo", ""), ("", LONG.strip())]
    table, picture, _ = chat.replies
    assert (table.file.content, picture.file.content) == (TABLE, chart())
    assert len(rig.requests) == 2
    assert "[berths.png is sent to the person with your answer]" in str(rig.requests[-1].messages)

    # A short text is the caption. The history keeps one line about each file.
    await rig.ask(anna, chat, "Draw again")
    await closed(rig, 2)
    assert shown(chat)[3:] == [("document", ""), ("photo", "Here they are.")]
    kept = "[sent file: berths.csv]\n[sent picture: berths.png]"
    assert ("assistant", f"{LONG}\n{kept}") in said(rig.requests[-1])
    stored = await rig.stored()
    assert b"[sent picture: berths.png]" in stored
    assert chart() not in stored
    assert TABLE not in stored


async def test_the_command_of_our_docs_draws_what_is_found_again(rig: Rig, tmp_path: Path) -> None:
    (anna, chat) = rig.anna()
    page = (ROOT / "docs" / "outside-tools.md").read_text()
    (tmp_path / "cards.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    command = {"cards": {"command": [sys.executable, str(tmp_path / "cards.py")]}}
    await rig.start(mcp_servers=orjson.dumps(command).decode(), openai_embedding_model="off")
    card = tool_call("cards__draw_card", text="Happy birthday!", title="Birthday of Nina")
    rig.script.on("Make me", Reply(tool_calls=(card,)), "Here it is.")
    await rig.ask(anna, chat, "Make me a card")
    await closed(rig, 1)
    # Without an image model this is the one tool that draws.
    drawing = [tool.name for tool in rig.requests[0].tools if "draw" in tool.name]
    assert drawing == ["cards__draw_card"]
    assert shown(chat) == [("photo", "Here it is.")]
    found = await rig.ask(anna, chat, "/recall birthday")
    assert "[sent picture: Birthday of Nina.png]" in found.text


def draws(prompt: str, title: str) -> Reply:
    return Reply(tool_calls=(tool_call("draw_picture", prompt=prompt, title=title),))


async def test_a_picture_is_drawn_sent_paid_for_and_found_again(rig: Rig) -> None:
    rig.model.dialect = Dialect(filtered=frozenset({"gore"}))
    ada, adas = await rig.start_with_ada(
        openai_model="main-model",
        openai_embedding_model="off",
        openai_image_model="dall-e-3",
        prices="main-model 0 0 0; dall-e-3 0.04/image",
        budget_per_month=1,
        window_messages=2,
    )
    rig.script.on("a present", draws("A dragon in ink", "Red dragon, lighthouse"), "For you.")
    rig.script.on("a fight", draws("gore", "Fight"), "I may not draw that. A duel, perhaps?")
    rig.script.on("a ship", draws("A ship", "Ship"), "It did not work.")
    anna, chat = rig.anna()

    reply = await rig.ask(anna, chat, "Draw me a present")
    assert (reply.text, reply.file.content) == ("For you.", PICTURE)
    result = rig.requests[-1].messages[-1].content
    assert result.endswith("[Red dragon, lighthouse.png is sent to the person with your answer]")
    await closed(rig, 1)

    # The filter refuses: the model is told, and says so. Then the server fails.
    reply = await rig.ask(anna, chat, "Draw me a fight")
    assert (reply.media, reply.text) == (None, "I may not draw that. A duel, perhaps?")
    assert "the filter of the image server" in rig.requests[-1].messages[-1].content
    rig.model.faults.add(server_error(), times=2, when=is_image)
    reply = await rig.ask(anna, chat, "Draw me a ship")
    assert (reply.media, reply.text) == (None, "It did not work.")
    assert "they may ask again later" in rig.requests[-1].messages[-1].content
    assert (await rig.bot.wait_for_log("picture not drawn"))["status"] == 500
    await closed(rig, 3)

    # Only the picture that came costs, and its words are not in the log.
    costs = "Pictures drawn: 1\n\nBudget: 0.0400 of 1.0000 (4 %)"
    assert costs in (await rig.ask(ada, adas, "/usage")).text
    assert "dragon" not in "\n".join(rig.bot.raw)

    # Nobody wrote "lighthouse": nothing but the name of the picture says it.
    sent = "[sent picture: Red dragon, lighthouse.png]"
    assert sent in (await rig.ask(anna, chat, "/recall lighthouse")).text
    await rig.ask(anna, chat, "Which picture had a lighthouse?")
    assert sent in rig.requests[-1].memory
