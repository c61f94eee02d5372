"""Memory is learned despite the habits of cheap models and sparse servers."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import orjson
import pytest

from tests.acceptance.asking import ask_and_learn
from tests.acceptance.memory_model import Batch, Parts, gullible, main_requests, remember_with
from tests.acceptance.rig import Rig

JSON_MODE = frozenset({"json_object"})
NOTHING: frozenset[str] = frozenset()


def fenced(text: str) -> str:
    return f"```json\n{text}\n```"


def with_prose(text: str) -> str:
    return (
        "<think>What would they like? {maybe this}</think>Sure! Here is the JSON that you "
        f"asked for:\n\n{text}\n\nLet me know if I can help you with {{anything}} else."
    )


def indented_with_line_breaks(text: str) -> str:
    return (
        orjson.dumps(orjson.loads(text), option=orjson.OPT_INDENT_2)
        .decode()
        .replace("It was said: ", "It was\nsaid: ")
    )


def sparse(batch: Batch) -> Parts:
    """Leave out empty fields, and write the word "null" for null."""
    parts = gullible(batch)
    state, facts = parts["running_state"], parts["facts"]
    assert isinstance(state, dict)
    assert isinstance(facts, dict)
    few = {"discussion_summary": state["discussion_summary"], "last_name": "null"}
    bare = [{"text": fact["text"], "message": fact["message"]} for fact in facts["facts"]]
    return {"running_state": few, "facts": {"facts": bare}, "mood": "sunny"}


def overdone(batch: Batch) -> Parts:
    """Write fields that were not requested, and numbers as text."""
    parts = gullible(batch)
    facts: Any = parts["facts"]
    for fact in facts["facts"]:
        fact |= {"message": str(fact["message"]), "confidence": 0.9, "replaces": "null"}
    state: Any = parts["running_state"]
    state |= {"mood": "sunny", "open_problems": None}
    return parts


@dataclass(frozen=True)
class Habits:
    """How a model writes, and what its server accepts."""

    name: str
    formats: frozenset[str] = JSON_MODE
    unsupported: frozenset[str] = NOTHING
    read: Callable[[Batch], Parts] = gullible
    dress: Callable[[str], str] = str
    mode: str = "json_object"


HABITS = (
    Habits("fences", dress=fenced),
    Habits("prose", formats=NOTHING, dress=with_prose, mode="text"),
    Habits("line breaks", formats=NOTHING, dress=indented_with_line_breaks, mode="text"),
    Habits("missing fields", read=sparse),
    Habits("fields too many", formats=NOTHING, read=overdone, dress=fenced, mode="text"),
    Habits(
        "a schema taken and not minded",
        formats=frozenset({"json_schema", "json_object"}),
        read=sparse,
        dress=fenced,
        mode="json_schema",
    ),
    Habits(
        "no parameter taken",
        formats=NOTHING,
        unsupported=frozenset(
            {"temperature", "response_format", "max_completion_tokens", "stream_options"}
        ),
        mode="text",
    ),
)


@pytest.mark.parametrize("habits", HABITS, ids=lambda habits: habits.name)
async def test_memory_is_learned_despite_the_habits_of_a_cheap_model(
    webhook_rig: Rig, habits: Habits
) -> None:
    rig, model = webhook_rig, remember_with(webhook_rig)
    model.read, model.dress = habits.read, habits.dress
    rig.model.dialect = replace(
        rig.model.dialect,
        response_formats=habits.formats,
        unsupported=habits.unsupported,
        reads_arguments=True,
    )
    await rig.start(learn="state facts synopses", learn_every_turns=1)
    anna, chat = rig.anna()
    assert (await ask_and_learn(rig, anna, chat, "My boat is called Aurora")).text == "All right."
    await ask_and_learn(rig, anna, chat, "Well then?")
    await rig.ask(anna, chat, "What do you know?")
    memory = main_requests(rig)[-1].memory
    assert '"discussion_summary": "It was said: ' in memory
    assert '"first_name": "Anna"' in memory
    assert "Their boat is Aurora." in memory
    assert model.batches[-1].request.response_format == habits.mode
    assert {reply.text for reply in chat.replies} == {"All right."}
    # The bot finds out only once what a server does not accept.
    assert len(rig.model.log.refusals) <= 2 + len(habits.unsupported)
    assert len(model.batches) <= 3
