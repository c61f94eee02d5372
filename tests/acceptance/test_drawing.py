"""The bot draws if a model for it is named; the picture is paid for, and found by its words."""

from tests.acceptance.rig import Rig
from tests.acceptance.test_delivery import closed
from tests.servers.model_api import PICTURE, Dialect, Reply, is_image, server_error, tool_call

ADMIN_ID = 1009


def draws(prompt: str, title: str) -> Reply:
    return Reply(tool_calls=(tool_call("draw_picture", prompt=prompt, title=title),))


async def test_a_picture_is_drawn_sent_paid_for_and_found_again(webhook_rig: Rig) -> None:
    rig = webhook_rig
    rig.model.dialect = Dialect(filtered=frozenset({"gore"}))
    await rig.start(
        openai_model="main-model",
        openai_embedding_model="off",
        admin_user_ids=ADMIN_ID,
        openai_image_model="dall-e-3",
        prices="main-model 0 0 0; dall-e-3 0.04/image",
        budget_per_month=1,
        window_messages=2,
    )
    rig.script.on("a present", draws("A dragon in ink", "Red dragon, lighthouse"), "For you.")
    rig.script.on("a fight", draws("gore", "Fight"), "I may not draw that. A duel, perhaps?")
    rig.script.on("a ship", draws("A ship", "Ship"), "It did not work.")
    (anna, chat), (ada, adas) = rig.anna(), rig.person(ADMIN_ID, "Ada")

    reply = await rig.ask(anna, chat, "Draw me a present")
    assert reply.media
    assert (reply.text, reply.media.file.content) == ("For you.", PICTURE)
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


async def test_without_an_image_model_the_model_has_no_such_tool(webhook_rig: Rig) -> None:
    rig = webhook_rig
    await rig.start()
    rig.script.on("a present", draws("A dragon", "Dragon"), "I cannot draw.")
    anna, chat = rig.anna()
    assert (await rig.ask(anna, chat, "Draw me a present")).text == "I cannot draw."
    assert "draw_picture" not in {tool.name for tool in rig.requests[0].tools}
    assert not [call for call in rig.model.log.calls if "images" in call.path]
