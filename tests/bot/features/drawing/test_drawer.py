"""A picture comes from models of both kinds, within a time limit and a size, or not at all."""

from asyncio import gather

import pytest

from bot.features.drawing import feature
from bot.features.drawing.feature import Drawer, DrawPictureArguments, draw_picture_tool
from bot.model.call import Usage
from bot.model.model_errors import ModelError, NotAModel
from bot.model.openai_client import ModelClient
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolError
from memory.behaviors.tool_output import OutgoingFile
from tests.bot.model.conftest import client, reports_of, script, server
from tests.servers.model_api import PICTURE, ApiError, Break, ModelApiServer, is_image

__all__ = ["client", "script", "server"]


@pytest.mark.parametrize(
    ("model", "usage"),
    [("dall-e-3", Usage(drawn_images=1)), ("gpt-image-1", Usage(20, 1056, drawn_images=1))],
)
async def test_a_picture_comes_from_models_that_know_the_format_and_from_others(
    client: ModelClient, server: ModelApiServer, model: str, usage: Usage
) -> None:
    reports = reports_of(client)
    drawer = Drawer(client, model, 10)
    assert [await drawer.picture("A red dragon") for _ in "ab"] == [PICTURE, PICTURE]
    assert [(r.kind, r.model, r.usage) for r in reports] == [("drawing", model, usage)] * 2
    # The refusal of the format is remembered.
    assert len(server.log.refusals) == (model == "gpt-image-1")


@pytest.mark.parametrize(
    ("fault", "outcome", "drawn"),
    [
        (Break.HTML, "NotAModel", 0),
        (Break.HANG, "ModelUnavailable", 1),
        (ApiError(400, "no"), "ModelRefused", 0),
        (ApiError(400, "no", code="content_policy_violation"), "ContentRefused", 0),
    ],
)
async def test_a_server_that_does_not_draw_is_asked_once_and_counted_if_it_may_have_drawn(
    client: ModelClient, server: ModelApiServer, fault: Break | ApiError, outcome: str, drawn: int
) -> None:
    reports = reports_of(client)
    server.faults.add(fault, when=is_image)
    with pytest.raises(ModelError):
        await Drawer(client, "dall-e-3", 1).picture("A red dragon")
    assert [(each.outcome, each.usage.drawn_images) for each in reports] == [(outcome, drawn)]
    assert len(server.log.calls) == 1


async def test_neither_too_large_an_answer_nor_an_address_is_fetched(
    client: ModelClient, server: ModelApiServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawer = Drawer(client, "dall-e-3", 10)
    monkeypatch.setattr(drawer, "_takes_format", False)  # the server sends an address
    with pytest.raises(NotAModel, match="KeyError"):
        await drawer.picture("A red dragon")
    monkeypatch.setattr(feature, "_MAX_BYTES", 10)
    with pytest.raises(NotAModel, match="too long"):
        await drawer.picture("A red dragon")
    assert {call.path for call in server.log.calls} == {"/v1/images/generations"}


async def test_calls_side_by_side_draw_no_more_than_can_be_sent(
    client: ModelClient, server: ModelApiServer, context: AgentContext
) -> None:
    draw = draw_picture_tool(Drawer(client, "gpt-image-1", 10)).run
    dragon = DrawPictureArguments(prompt="A red dragon", title="Dragon")
    context.files.append(OutgoingFile("a.png"))
    ends = await gather(*(draw(dragon, context) for _ in range(4)), return_exceptions=True)
    assert [isinstance(each, ToolError) for each in ends] == [False, False, True, True]
    assert len(server.log.calls) - len(server.log.refusals) == 2
    assert context.files == [OutgoingFile("a.png")]
