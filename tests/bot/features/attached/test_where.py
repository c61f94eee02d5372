"""A behavior learns and speaks only where it is attached, and its class must have a name."""

import pytest

from bot.assistant import behaviors_of
from bot.feature import Feature
from bot.features.attached.feature import BehaviorsCommand, feature
from bot.features.topics.feature import OtherTopics
from bot.operator_classes import UnusableClass
from memory.behaviors.behavior import AIContextBehavior
from memory.memory import Memory
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.memory.learning.scripted import ScriptedModel, talk_and_learn
from tests.memory.turns import HERE
from tests.settings import Settings

PARTS = "tests.acceptance.operator_parts"


async def test_a_behavior_learns_from_what_is_said_while_it_is_attached(memory: Memory) -> None:
    settings = Settings(_env_file=None, learn="off", behaviors=f"{PARTS}:Meals@off")
    services, model = services_of(memory, settings), ScriptedModel()
    services.features.append(made := feature(services))
    manager = behaviors_of(services)
    (meals,) = made.behaviors
    memory.enable_learning([meals], model)
    shown = BehaviorsCommand({"meals": meals}, memory, services.access, services.sentences)
    model.parts = {"meals": {"meals": "soup "}}

    await talk_and_learn(memory, "one")
    assert model.asked == []
    assert meals not in manager.within(HERE)

    await shown.attach(HERE, "meals")
    assert await shown.attached(HERE) == {"meals"}
    await talk_and_learn(memory, "two")
    assert len(model.asked) == 1
    assert '"one"' not in model.asked[0][1]
    assert meals in manager.within(HERE)

    await shown.attach(HERE, "meals", is_on=False)
    await shown.attach(HERE, "meals", is_on=False)
    await talk_and_learn(memory, "three")
    assert len(model.asked) == 1
    assert await shown.attached(HERE) == set()

    await shown.attach(HERE, "meals")
    await talk_and_learn(memory, "four")
    assert '"four"' in model.asked[1][1]
    assert '"three"' not in model.asked[1][1]


def test_a_class_without_a_name_prevents_the_start(memory: Memory) -> None:
    settings = Settings(_env_file=None, behaviors="memory.behaviors.behavior:AIContextBehavior@off")
    with pytest.raises(UnusableClass, match=r"BEHAVIORS: .* needs a `name` of its own"):
        feature(services_of(memory, settings))


def test_a_behavior_runs_in_private_and_elsewhere_only_if_it_is_turned_on(memory: Memory) -> None:
    both = f"{PARTS}:Meals@private, {PARTS}:Meals@off"
    services = services_of(memory, Settings(_env_file=None, learn="off", behaviors=both))
    services.features.append(feature(services))
    (meals,), group = behaviors_of(services).behaviors, Scope.of_chat(-5)
    assert (meals.reach.covers(HERE), meals.reach.covers(group)) == (True, False)


@pytest.mark.parametrize("name", ["facts", "other_topics"])
def test_a_feature_that_shares_stored_data_prevents_the_start(memory: Memory, name: str) -> None:
    """Also the data of ours that is off, and of another feature."""
    taking = OtherTopics(memory.histories)
    taking.name = name
    others = [AIContextBehavior(), AIContextBehavior(), OtherTopics(memory.histories)]
    services = services_of(memory, Settings(_env_file=None, learn="off"))
    services.features.append(Feature(name="all", behaviors=[*others, taking]))
    with pytest.raises(UnusableClass, match=f"FEATURES: two behaviors have the name {name}"):
        behaviors_of(services)
