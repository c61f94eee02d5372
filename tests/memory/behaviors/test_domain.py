"""Updates of an operator's part of the running state: told why they are refused, set by steps."""

from typing import Any

import orjson
import pytest
from pydantic import BaseModel, Field
from structlog.testing import capture_logs

from bot.assistant import behaviors_of
from memory.behaviors.behavior_store import BehaviorStore, CannotStore
from memory.behaviors.knowledge_base import (
    MAX_DOMAIN_BYTES,
    DomainRefused,
    KnowledgeBase,
    knowledge_base_model,
    updated_fields,
)
from memory.behaviors.learning_behavior import Cadence
from memory.behaviors.running_state import RunningState
from memory.memory import Memory
from memory.queue.open_turn import Closing
from memory.scopes.changes import Write
from memory.scopes.fields import Failures, State
from memory.scopes.writes import SetDomain, ToolWrite, to_json
from tests.bot.features.services import services_of
from tests.conftest import Documented
from tests.memory.behaviors.test_behavior_store import Chat
from tests.memory.learning.scripted import ScriptedModel, talk, talk_and_learn
from tests.memory.turns import HERE
from tests.settings import Settings


class Ticket(BaseModel):
    key: str
    text: str
    labels: list[str] = []


async def test_the_model_is_told_once_why_its_update_was_refused_then_the_rest_is_learned(
    memory: Memory,
) -> None:
    model = ScriptedModel()
    refusals: list[str] = []
    state = RunningState(memory.scopes, Ticket, Cadence(every_turns=1), refusals.append)
    memory.enable_learning([state], model)
    told = KnowledgeBase(discussion_summary="A ticket").model_dump()
    told["domain"] = {"key": "A-1", "labels": ["secret" * 350]}
    model.parts = {"running_state": told}
    await talk(memory, "one")
    with capture_logs() as logs:
        await memory.learn(HERE)
        here = await memory.scopes.read(HERE)
        assert (here.state, here.watermark(state.name)) == ("", 0)
        failures = here.get(Failures, state.name)
        assert failures
        again = Failures(state.name, failures.count, 0, failures.feedback)
        await memory.scopes.write(here, Write(fields=[again]))
        await memory.learn(HERE)
    (_, first), (_, second) = model.asked
    assert "not kept" not in first
    assert "not kept: `domain` would take 2127 bytes, but at most 1200" in second
    here = await memory.scopes.read(HERE)
    assert (here.watermark(state.name), here.get(Failures, state.name)) == (2, None)
    assert '"discussion_summary":"A ticket"' in here.state
    assert '"domain":null' in here.state
    assert "secret" not in f"{logs}{failures.feedback}"
    assert [line["event"] for line in logs] == ["part rejected", "domain refused"]
    assert refusals == ["learning", "learning"]


async def test_an_erasure_takes_what_the_model_was_told_but_no_numbers(memory: Memory) -> None:
    await talk(memory, "one")
    here = await memory.scopes.read(HERE)
    await memory.scopes.write(here, Write(fields=[Failures("own", 2, 7, "it | quotes Ann")]))
    await memory.forgetting.erase_messages(HERE, [1], "receipt")
    assert (await memory.scopes.read(HERE)).get(Failures, "own") == Failures("own", 2, 7)


def test_long_texts_lose_their_ends_and_all_else_is_kept_whole() -> None:
    given = {"key": "A-1", "text": "It rains into the hall. " * 100, "labels": ["roof", "rain"]}
    kept = updated_fields(Ticket, {}, given)
    text = kept.pop("text")
    assert kept == {"key": "A-1", "labels": ["roof", "rain"]}
    assert isinstance(text, str)
    assert text.startswith("It rains into the hall. It rains")
    assert text.endswith("…")
    assert 1_100 < len(orjson.dumps({**kept, "text": text})) <= MAX_DOMAIN_BYTES
    assert updated_fields(Ticket, {}, {**kept, "text": text}) == {**kept, "text": text}


def test_a_text_that_its_model_does_not_take_cut_is_refused() -> None:
    class Whole(BaseModel):
        text: str = Field(pattern=r"\.$")

    with pytest.raises(DomainRefused, match=r"at most 1200 are kept; the longest field is text"):
        updated_fields(Whole, {}, {"text": "It rains. " * 200 + "Yes."})


async def test_a_tool_sets_and_clears_fields_and_hears_why_they_are_refused(memory: Memory) -> None:
    store = BehaviorStore(memory.scopes, "tickets", knowledge_base_model(Ticket))
    writes: list[ToolWrite] = []
    now = Chat.now(writes)
    await store.set_domain(now, {"key": "A-1"})
    for bad, why in (({"text": 7}, "string_type"), ({"labels": ["x" * 1_200]}, "at most 1200")):
        fields: dict[str, Any] = bad
        with pytest.raises(CannotStore, match=why):
            await store.set_domain(now, fields)
    await store.set_domain(now, {"key": None, "text": "rain"})
    assert writes == [SetDomain('{"key":"A-1"}'), SetDomain('{"key":null,"text":"rain"}')]
    with pytest.raises(CannotStore, match="answer already"):
        await store.set_domain(Chat.now(), {"key": "A-1"})
    with pytest.raises(CannotStore, match="no running state"):
        await BehaviorStore(memory.scopes, "tickets").set_domain(now, {"key": "A-1"})


async def test_the_example_of_the_page_clears_what_was_learned(
    memory: Memory, documented: Documented
) -> None:
    module = documented("features.md", "class Tickets")
    settings = Settings(_env_file=None, learn="state", behaviors=f"{module.__name__}:Tickets")
    services = services_of(memory, settings)
    services.features.append(module.feature(services))
    behaviors = behaviors_of(services)
    (state,) = [each for each in behaviors.behaviors if isinstance(each, RunningState)]
    (tool,) = [each for each in behaviors.functions if each.name == "close_ticket"]
    memory.enable_learning([state])
    kept = KnowledgeBase(current_goals=["move"]).model_dump() | {"domain": {"key": "MOVE-1"}}
    await talk(memory, "one")
    here = await memory.scopes.read(HERE)
    await memory.scopes.write(here, Write(fields=[State(orjson.dumps(kept).decode())]))
    await memory.scopes.read(HERE)
    writes: list[ToolWrite] = []

    class Context:
        call_context = Chat.now(writes)

    assert await tool.run(tool.arguments(), Context()) == "It is closed."  # type: ignore[arg-type]
    await talk_and_learn(memory, "close it", closing=Closing(writes=to_json(writes)))
    stored = orjson.loads((await memory.scopes.read(HERE)).state)
    assert (stored["domain"], stored["current_goals"]) == (None, ["move"])
