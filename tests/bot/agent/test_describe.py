"""Descriptions of pictures: what they change about an answer, and what not."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import pytest

from bot.agent.describe import DescribingAgent
from bot.model.call import NO_LABELS, CallLabels, ModelReply, PromptMessage
from bot.model.model_errors import ModelUnavailable
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import FinishAction
from memory.behaviors.tool import ToolDefinition
from memory.message import Picture

BOAT = Picture(7, b"a boat", "image/jpeg", 1, 1)


class Describer:
    """Describes each picture with the next of its words, or fails with it."""

    def __init__(self, *words: str | Exception) -> None:
        self._words = list(words)
        self._running = 0
        self.most_at_once = 0

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        del messages, tools, tool_choice, labels
        words = self._words.pop(0)
        self._running += 1
        self.most_at_once = max(self.most_at_once, self._running)
        await asyncio.sleep(0)
        self._running -= 1
        if isinstance(words, Exception):
            raise words
        return ModelReply(words, (), "stop")


async def answer(context: AgentContext) -> FinishAction:
    del context
    return FinishAction("A boat.")


async def test_a_description_is_kept_beside_the_answer(context: AgentContext) -> None:
    context.pictures = (BOAT,)
    assert await DescribingAgent(answer, Describer(" A blue\n boat ")).run(context) == FinishAction(
        "A boat."
    )
    assert context.seen == {7: "A blue boat"}


@pytest.mark.parametrize("error", [ModelUnavailable("away"), ValueError("a bug")], ids=str)
async def test_a_failed_description_changes_nothing_about_the_answer(
    context: AgentContext, error: Exception
) -> None:
    context.pictures = (BOAT,)
    assert await DescribingAgent(answer, Describer(error)).run(context) == FinishAction("A boat.")
    assert context.seen == {}


async def test_of_pictures_that_the_server_refused_no_description_is_kept(
    context: AgentContext,
) -> None:
    async def unseen(context: AgentContext) -> FinishAction:
        await asyncio.sleep(0.01)  # the description is there
        context.pictures, context.are_pictures_refused = (), True
        return FinishAction("A fine name.")

    context.pictures = (BOAT,)
    assert await DescribingAgent(unseen, Describer("A boat")).run(context) == FinishAction(
        "A fine name."
    )
    assert context.seen == {}


async def test_an_album_is_described_a_few_pictures_at_a_time(context: AgentContext) -> None:
    context.pictures = tuple(replace(BOAT, message_id=id_) for id_ in range(1, 11))
    describer = Describer(*["A boat"] * 10)
    await DescribingAgent(answer, describer).run(context)
    assert len(context.seen) == 10
    assert describer.most_at_once == 3
