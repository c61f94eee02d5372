"""The learning behavior of docs/behaviors.md keeps a state of its own beside the running state."""

from dataclasses import replace

import orjson
import pytest

from bot.assistant import behaviors_of
from bot.operator_classes import UnusableClass
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.behavior_store import BehaviorState
from memory.behaviors.knowledge_base import KnowledgeBase
from memory.memory import Memory
from memory.scopes.fields import Failures
from memory.scopes.sources import Erased
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.conftest import Documented
from tests.memory.behaviors.batches import call_context
from tests.memory.learning.scripted import Notes, ScriptedModel, talk_and_learn
from tests.memory.turns import GROUP, HERE
from tests.settings import Settings

OTHER_TOPIC = Scope.of_chat(HERE.chat_id, HERE.topic_id + 1)


class Facts(Notes):
    """Takes the name of a behavior of ours."""

    name = "facts"


@pytest.fixture
def path(documented: Documented) -> str:
    """Return the import path of the diary of the page."""
    return f"{documented('behaviors.md', 'class Meals').__name__}:Meals"


async def learn(memory: Memory, model: ScriptedModel, path: str) -> AIContextBehaviorManager:
    """Let the bot learn from a private chat and a group; return its behaviors."""
    settings = Settings(
        _env_file=None, learn="state", learn_every_turns=1, documents="off", behaviors=path
    )
    behaviors = behaviors_of(services_of(memory, settings, internal=model))
    memory.enable_learning(behaviors.behaviors, model)
    for conversation, meal in ((HERE, "soup"), (GROUP, "pizza")):
        summary = KnowledgeBase(discussion_summary=f"They eat {meal}").model_dump()
        model.parts = {"running_state": summary, "meals": {"meals": f"They ate {meal}."}}
        await talk_and_learn(memory, "I ate", conversation=conversation)
    return behaviors


async def shown(memory: Memory, behaviors: AIContextBehaviorManager, where: Scope) -> str:
    for scope in (where, where.facts_scope):
        await memory.scopes.read(scope)
    here = replace(call_context(where))
    (meals,) = [each for each in behaviors.behaviors if each.name == "meals"]
    return await meals.on_model_invoke(here, [])


async def test_its_state_stands_beside_ours_with_the_person_or_the_group(
    memory: Memory, model: ScriptedModel, path: str
) -> None:
    behaviors = await learn(memory, model, path)
    assert "They eat soup" in (await memory.scopes.read(HERE)).state
    assert await shown(memory, behaviors, HERE) == "Meals: They ate soup."
    assert await shown(memory, behaviors, OTHER_TOPIC) == "Meals: They ate soup."
    assert await shown(memory, behaviors, GROUP) == "Meals: They ate pizza."
    exported = orjson.loads((await memory.exporter.export(HERE)).content)
    assert exported["states_of_behaviors"] == {"meals": "They ate soup."}


async def test_its_state_goes_with_a_message_and_the_persons_with_any(
    memory: Memory, model: ScriptedModel, path: str
) -> None:
    behaviors = await learn(memory, model, path)
    await memory.forgetting.erase_messages(GROUP, {1}, "receipt")
    assert await shown(memory, behaviors, GROUP) == ""
    assert await shown(memory, behaviors, HERE) == "Meals: They ate soup."
    await memory.forgetting.erase_messages(OTHER_TOPIC, {1}, "another receipt")
    assert await shown(memory, behaviors, OTHER_TOPIC) == ""


def test_its_state_stays_if_only_newer_messages_go() -> None:
    state = BehaviorState("meals", 4, text="soup")
    here = Erased(GROUP.tag, [5, 6])
    assert state.without(here) == state
    for erased in (replace(here, seqs=[4]), replace(here, sender_id=7), replace(here, seqs=[])):
        assert state.without(erased) is None
    assert BehaviorState("meals", text="soup").without(replace(here, is_here=False)) is None


async def test_too_large_a_state_is_refused_and_told(memory: Memory, model: ScriptedModel) -> None:
    notes = Notes(every=1)
    memory.enable_learning([notes], model)
    notes.state = "x" * 4_097
    model.parts = {"notes": {"text": "a"}}
    await talk_and_learn(memory, "one")
    here = await memory.scopes.read(HERE)
    failures = here.get(Failures, "notes")
    assert (here.watermark("notes"), here.facts, here.all(BehaviorState)) == (0, [], [])
    assert failures
    assert failures.feedback == "the state would take 4097 bytes, but at most 4096 are kept"


def test_the_name_of_a_behavior_of_ours_is_refused(memory: Memory, model: ScriptedModel) -> None:
    settings = Settings(_env_file=None, behaviors=f"{__name__}:Facts")
    with pytest.raises(UnusableClass, match="needs a `name` of its own"):
        behaviors_of(services_of(memory, settings, internal=model))
