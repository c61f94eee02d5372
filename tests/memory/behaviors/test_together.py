"""The built-in behaviors with the learner: one model call for all that are due."""

import pytest

from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.running_state import RunningState
from memory.behaviors.synopses import Synopses
from memory.behaviors.user_facts import UserFacts
from memory.learning.learner import LearningConfig
from memory.memory import Memory
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.memory.behaviors.batches import ANNA, DAY, NOW, PRIVATE, call_context, said
from tests.memory.learning.scripted import ScriptedModel
from tests.memory.words_embedder import WordsEmbedder

HERS = Scope.of_person(ANNA.id)


@pytest.fixture
def embedder() -> WordsEmbedder:
    return WordsEmbedder()


async def talk(memory: Memory, *texts: str, days_ago: int = 90) -> None:
    """Store exchanges of the past, one a day."""
    history = await ChatHistory.read(memory.histories, PRIVATE)
    for day, text in enumerate(texts):
        at = NOW - (days_ago - day) * DAY
        await history.append_user_message(text, at, sender_id=ANNA.id, sender_name="Anna")
        await history.append_assistant_message("I see.", at + 5)


async def test_facts_state_and_synopses_of_a_turn_are_known_in_the_next(
    memory: Memory, tokens: TokenCounter
) -> None:
    model = ScriptedModel()
    model.parts = {
        "running_state": {"first_name": "Anna", "open_problems": ["Find a flat"], "mood": "!"},
        "facts": {
            "facts": [
                {"text": "Lives in Linz.", "message": 3, "replaces": "null"},
                {"text": "Is a robot.", "message": 2},
            ]
        },
        "synopses": {"likely_request": "A flat in Linz", "emotions": None},
    }
    behaviors = (
        RunningState(memory.scopes),
        UserFacts(memory.scopes, tokens),
        Synopses(memory.scopes, tokens, None),
    )
    memory.enable_learning(LearningConfig(behaviors, model))
    await talk(memory, "I live in Graz", "I have moved to Linz")
    await memory.learn(PRIVATE)
    await memory.learn(PRIVATE)
    assert len(model.asked) == 2  # two sessions, and nothing is learned twice

    await memory.scopes.read(HERS)
    everything = AIContextBehaviorManager(behaviors, time_limit_s=5)
    words = [said(0, "Which flat in Linz?")]
    assert await everything.on_model_invoke(call_context(), words) == (
        "State of this conversation (JSON):\n"
        '{"first_name": "Anna", "open_problems": ["Find a flat"]}\n'
        '  Back after 89 days, still open: "Find a flat"\n'
        "Facts, by id and since when they are known:\n"
        "#1 [24 August 2025, 3 months ago] Lives in Linz.\n"
        "Earlier sessions:\n"
        "[23 August 2025, 3 months ago] Request: A flat in Linz.\n"
        "[24 August 2025, 3 months ago] Request: A flat in Linz."
    )

    model.parts = {"facts": {"facts": [{"text": "Lives in Wels.", "message": 5, "replaces": 1}]}}
    await talk(memory, "Now I live in Wels", days_ago=30)
    await memory.learn(PRIVATE)
    old, new = (await memory.scopes.read(HERS)).facts
    assert (old.is_current, old.replaced_by, new.is_current) == (False, new.id, True)
    assert '"id":1' in str(model.asked[-1])
