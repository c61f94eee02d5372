"""A behavior learns and speaks only where it is attached, and its class must have a name."""

from dataclasses import replace

import pytest

from bot.assistant import behaviors_of
from bot.feature import Feature
from bot.features.attached.feature import Attachments, feature
from bot.features.topics.feature import OtherTopics
from bot.operator_classes import UnusableClass
from memory.behaviors.behavior import AIContextBehavior
from memory.learning.learner import LearningConfig
from memory.memory import Memory
from tests.bot.features.services import services_of
from tests.memory.learning.scripted import ScriptedModel, talk_and_learn
from tests.memory.turns import HERE
from tests.settings import Settings

PARTS = "tests.acceptance.operator_parts"


async def test_a_behavior_learns_from_what_is_said_while_it_is_attached(memory: Memory) -> None:
    settings = Settings(_env_file=None, learn="off", attachable_behaviors=f"{PARTS}:Meals")
    services, model = services_of(memory, settings), ScriptedModel()
    services.features.append(made := feature(services))
    manager = behaviors_of(services)
    (meals,) = made.behaviors
    memory.enable_learning(LearningConfig([meals], model))  # type: ignore[list-item]
    attachments = Attachments(memory, made.behaviors)
    model.parts = {"meals": {"meals": "soup "}}

    await talk_and_learn(memory, "one")
    assert model.asked == []
    assert meals not in manager.within(HERE)

    await attachments.attach(HERE, "meals")
    assert await attachments.attached(HERE) == {"meals"}
    await talk_and_learn(memory, "two")
    assert len(model.asked) == 1
    assert '"one"' not in model.asked[0][1]
    assert meals in manager.within(HERE)

    await attachments.attach(HERE, "meals", is_on=False)
    await attachments.attach(HERE, "meals", is_on=False)
    await talk_and_learn(memory, "three")
    assert len(model.asked) == 1
    assert await attachments.attached(HERE) == set()

    await attachments.attach(HERE, "meals")
    await talk_and_learn(memory, "four")
    assert '"four"' in model.asked[1][1]
    assert '"three"' not in model.asked[1][1]


@pytest.mark.parametrize(
    ("chosen", "why"),
    [
        (
            {"attachable_behaviors": "memory.behaviors.behavior:AIContextBehavior"},
            ": .* needs a `name` of its own",
        ),
        ({"attachable_behaviors": f"{PARTS}:Meals, {PARTS}:Meals"}, ".*: two behaviors have the"),
        (
            {"attachable_behaviors": f"{PARTS}:Meals", "behaviors": f"{PARTS}:Meals@private"},
            ".*: two behaviors have the name meals",
        ),
    ],
)
def test_a_class_without_a_name_or_named_twice_prevents_the_start(
    memory: Memory, chosen: dict[str, str], why: str
) -> None:
    settings = Settings(_env_file=None, learn="off", **chosen)  # type: ignore[arg-type]
    services = services_of(memory, settings)
    with pytest.raises(UnusableClass, match=f"ATTACHABLE_BEHAVIORS{why}"):
        behaviors_of(replace(services, features=[feature(services)]))


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
