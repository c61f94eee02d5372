"""Memory is learned despite the habits of cheap models and sparse servers.

Each habit by itself is in `tests/bot/model/test_structured_answers.py` and `test_structured.py`.
"""

from dataclasses import replace
from typing import Any

from tests.acceptance.asking import ask_and_learn
from tests.acceptance.memory_model import Batch, Parts, gullible, main_requests, remember_with
from tests.acceptance.rig import Rig

UNSUPPORTED = {"temperature", "response_format", "max_completion_tokens", "stream_options"}


def sloppy(batch: Batch) -> Parts:
    """Leave out empty fields, add others, and write nulls and numbers as text."""
    parts: dict[str, Any] = gullible(batch)
    summary = parts["running_state"]["discussion_summary"]
    parts["running_state"] = {"discussion_summary": summary, "last_name": "null", "mood": "sunny"}
    parts["facts"]["facts"] = [
        {"text": fact["text"], "message": str(fact["message"]), "confidence": 0.9}
        for fact in parts["facts"]["facts"]
    ]
    return parts


def with_prose(text: str) -> str:
    return f"<think>{{maybe this}}</think>Sure!\n\n```json\n{text}\n```\nIs it {{fine}}?"


async def test_memory_is_learned_despite_the_habits_of_a_cheap_model(rig: Rig) -> None:
    model = remember_with(rig)
    model.read, model.dress = sloppy, with_prose
    rig.model.dialect = replace(
        rig.model.dialect,
        response_formats=frozenset(),
        unsupported=frozenset(UNSUPPORTED),
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
    assert model.batches[-1].request.response_format == "text"
    assert {reply.text for reply in chat.replies} == {"All right."}
    # The bot finds out only once what a server does not accept.
    assert len(rig.model.log.refusals) <= 2 + len(UNSUPPORTED)
    assert len(model.batches) <= 3
