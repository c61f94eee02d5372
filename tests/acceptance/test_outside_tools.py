"""People use tools of an MCP server; a tool that may do harm runs once, and only after a yes."""

import orjson

from tests.acceptance.buttons import press, shown
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence
from tests.acceptance.test_delivery import closed
from tests.servers.bot_api import Chat, Message, Person
from tests.servers.mcp_shop import Shop, ShopServer
from tests.servers.model_api import Reply, tool_call

SHOWN = {"server": "shop", "tool": "order"}


async def asked(rig: Rig, person: Person, chat: Chat, thing: str) -> Message:
    """Let the model order a thing; return the bot's question."""
    rig.script.on(thing, Reply(tool_calls=(tool_call("shop__order", thing=thing),)))
    question = await rig.ask(person, chat, f"Order {thing}")
    arguments = orjson.dumps({"thing": thing}).decode()
    assert question.text == sentence("outside.ask", **SHOWN, arguments=arguments)
    assert [each.text for each in question.keyboard[0]] == ["Yes", "No"]
    return question


async def test_a_tool_from_outside_runs_once_and_only_after_a_yes(rig: Rig) -> None:
    shop = Shop()
    anna, chat = rig.anna()
    ben, _ = rig.ben()
    async with ShopServer(shop) as server:
        await rig.start(mcp_servers=orjson.dumps({"shop": {"url": server.address}}).decode())
        price = Reply(tool_calls=(tool_call("shop__price", thing="stamp"),))
        rig.script.on("price", price, "Five crowns.")
        assert (await rig.ask(anna, chat, "What is the price?")).text == "Five crowns."
        assert rig.requests[-1].messages[-1].content == shop.result
        tools = rig.requests[0].tools

        # The question survives a crash. What the tool says is answered in a turn of its own.
        shop.tools.reverse()
        question = await asked(rig, anna, chat, "a stamp")
        assert shop.calls == [("price", {"thing": "stamp"})]
        await closed(rig, 2)
        await rig.restart()
        rig.script.on("Yes", "It is ordered.", "I do not know whether it is ordered.")
        await press(rig, anna, question, "Yes")
        assert (await chat.wait_for_reply(after=question)).text == "It is ordered."
        await shown(rig, question, sentence("outside.agreed", **SHOWN))
        assert shop.calls[1:] == [("order", {"thing": "a stamp"})]
        *_, yes, call, result = rig.requests[-1].messages
        assert yes.content.endswith("Yes")
        assert [each.name for each in call.tool_calls] == ["shop__order"]
        assert result.content == shop.result
        assert rig.requests[-1].tools == tools

        # A tool that was running when the bot died does not run again.
        question = await asked(rig, anna, chat, "a cow")
        shop.is_silent = True
        shop.called.clear()
        await press(rig, anna, question, "Yes")
        await shop.called.wait()
        await rig.restart()
        reply = await chat.wait_for_reply(after=question)
        assert reply.text == "I do not know whether it is ordered."
        assert "it is not known whether it did its work" in rig.requests[-1].messages[-1].content
        assert len(shop.calls) == 3

        # Who says no, or did not ask, runs nothing.
        shop.is_silent = False
        group = rig.telegram.group("Club", [anna, ben])
        rig.script.on("a hat", Reply(tool_calls=(tool_call("shop__order", thing="a hat"),)))
        question = await rig.ask(anna, group, "@ricordo_bot Order a hat")
        assert await press(rig, ben, question, "Yes") == sentence("clear.not_yours")
        await press(rig, anna, question, "No")
        await shown(rig, question, sentence("outside.refused", **SHOWN))
        assert len(shop.calls) == 3
