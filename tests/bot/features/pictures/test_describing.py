"""Descriptions of pictures: what they change about an answer, and what not."""

import asyncio
from dataclasses import replace

import pytest

from bot.features.check.command_line import run_probe
from bot.features.pictures.feature import DescribingAgent, PictureDescriptions
from bot.features.pictures.probes import PROBES
from bot.model.call import ModelReply, ModelRequest, PromptMessage
from bot.model.model_errors import ModelUnavailable
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.message import Picture
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.model_api import ApiError, ModelApiServer

BOAT = Picture(7, b"a boat", "image/jpeg", 1, 1)


class Describer:
    """Describes pictures with the next of its words, or fails with it; keeps what it was asked."""

    def __init__(self, *words: str | Exception, is_blind: bool = False) -> None:
        self._words = list(words)
        self._is_blind = is_blind
        self.asked: list[PromptMessage] = []

    async def complete(self, request: ModelRequest) -> ModelReply:
        self.asked.append(request.messages[-1])
        words = "" if self._is_blind else self._words.pop(0)
        if isinstance(words, Exception):
            raise words
        return ModelReply(words, (), "stop", is_blind=self._is_blind)


async def answer(context: AgentContext) -> FinishAction:
    del context
    return FinishAction("A boat.")


@pytest.mark.parametrize(
    ("said", "kept"),
    [(" A blue\n boat ", {7: "A blue boat"}), (ModelUnavailable("away"), {}), (ValueError(), {})],
)
async def test_a_description_is_kept_beside_the_answer_which_a_failed_one_does_not_change(
    context: AgentContext, said: str | Exception, kept: dict[int, str]
) -> None:
    context.pictures = (BOAT,)
    assert await DescribingAgent(answer, [Describer(said)]).run(context) == FinishAction("A boat.")
    assert context.part(PictureDescriptions) == kept


async def test_refused_pictures_leave_no_description(context: AgentContext) -> None:
    async def unseen(context: AgentContext) -> FinishAction:
        await asyncio.sleep(0.01)  # the description is there
        context.pictures, context.are_pictures_refused = (), True
        return FinishAction("A fine name.")

    context.pictures = (BOAT,)
    assert await DescribingAgent(unseen, [Describer("A boat")]).run(context) == FinishAction(
        "A fine name."
    )
    assert context.part(PictureDescriptions) == {}


ALBUM = tuple(replace(BOAT, message_id=id_, detail="high") for id_ in range(11, 21))


@pytest.mark.parametrize(
    ("says", "seen"),
    [
        (
            "[1] A red\nboat [2] is near.\n2. A blue one\n**[10]** A gull\n[11] Nothing\n[3]\n",
            {11: "A red boat [2] is near.", 12: "A blue one", 20: "A gull"},
        ),
        ("Ten boats.", {11: "Ten boats."}),
        ("", {}),
    ],
)
async def test_an_album_is_described_in_one_call_at_low_detail(
    context: AgentContext, says: str, seen: dict[int, str]
) -> None:
    context.pictures = (*ALBUM, replace(BOAT, message_id=0))  # the last one is only replied to
    describer = Describer(says)
    await DescribingAgent(answer, [describer]).run(context)
    assert context.part(PictureDescriptions) == seen
    [asked] = describer.asked
    assert [each.detail for each in asked.pictures] == ["low"] * 10


LONG = "The picture shows a blue boat with white sails, the Aurora, off the coast of Oulu. " * 9


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("[photo]", 0),
        ("[photo]\n\n🙂", 0),
        ("[photo]\n\nWas steht auf dem Bild?", 0),
        ("[photo]\n\nMy new boat", 1),
    ],
)
async def test_an_answer_that_says_what_the_picture_shows_is_its_description(
    context: AgentContext, said: str, calls: int
) -> None:
    async def tell(_: AgentContext) -> FinishAction:
        return FinishAction(LONG)

    context.pictures, context.user_message = (BOAT,), replace(context.user_message, text=said)
    describer = Describer("A boat.")
    await DescribingAgent(tell, [describer]).run(context)
    assert len(describer.asked) == calls
    assert context.part(PictureDescriptions) == {7: "A boat." if calls else LONG[:400]}
    context.pictures, context.parts, describer = ALBUM, {}, Describer("[2] A boat.")
    await DescribingAgent(tell, [describer]).run(context)
    assert context.part(PictureDescriptions) == {12: "A boat."}, (
        "one answer does not say what each picture shows"
    )


async def test_a_seeing_memory_model_describes_a_blind_one_is_asked_once(
    context: AgentContext,
) -> None:
    context.pictures = (BOAT,)
    answers, describes = Describer("A boat.", "A boat."), Describer("A blue boat.")
    await DescribingAgent(answer, [answers, describes]).run(context)
    assert (context.part(PictureDescriptions), answers.asked) == ({7: "A blue boat."}, [])
    blind = Describer(is_blind=True)
    agent = DescribingAgent(answer, [answers, blind])
    for _ in range(2):
        context.parts = {}
        await agent.run(context)
        assert context.part(PictureDescriptions) == {7: "A boat."}
    assert (len(blind.asked), len(answers.asked)) == (1, 2)


@pytest.mark.parametrize(
    ("error", "verdict", "seen"),
    [
        (None, "ok", "eyes sees pictures (low detail)"),
        (
            ApiError(500, "image input is not supported - hint: you may need the mmproj"),
            "ok",
            "eyes cannot see pictures: people are told so",
        ),
        (ApiError(401, "Incorrect key"), "warn", "the key was refused"),
    ],
)
async def test_a_small_picture_is_sent(
    settings_of: SettingsOf,
    model_api: ModelApiServer,
    error: ApiError | None,
    verdict: str,
    seen: str,
) -> None:
    if error:
        model_api.dialect = type(model_api.dialect)(
            refuses=lambda asked: error if "data:image/png" in str(asked.raw) else None
        )
    settings = settings_of(openai_base_url=model_api.base_url, openai_model="eyes")
    [row] = (await rows_of(run_probe(PROBES[0], settings))).values()
    assert (row.verdict, row.seen) == (verdict, seen)
    asked = len(model_api.log.calls)
    off = settings_of(openai_base_url=model_api.base_url, image_detail="off")
    [row] = (await rows_of(run_probe(PROBES[0], off))).values()
    assert (row.verdict, len(model_api.log.calls)) == ("ok", asked)
