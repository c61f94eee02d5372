"""An operator's selector and agent take the place of ours, within our limits."""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.agent.agent import FunctionsBasedAgent, run_agent
from bot.feature import Feature, Replacements
from bot.features import open_features
from bot.model.model_errors import ModelUnavailable
from bot.operator_classes import (
    OperatorAgent,
    OwnSelector,
    UnusableClass,
    agents_of,
    built_behaviors,
    replaced_by,
    selector_of,
)
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, FinishAction, ToolCall
from memory.memory import Memory
from memory.message import Message
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.bot.agent.conftest import toolbox_of
from tests.bot.agent.test_agent import ScriptedModel, prompt, reply
from tests.bot.features.services import services_of
from tests.conftest import Documented
from tests.settings import Settings

DAY_S = 86_400
MAX_STEPS = 2
SETTINGS = Settings(_env_file=None)
SECRET = "what Anna said"
THEIRS = "tests.acceptance.greeting_feature"
CALL = ToolCall("1", "echo", '{"text": "a"}')


def dialogue(*texts: str) -> list[Message]:
    """Return a message a day, two of which are an exchange, with a token for each letter."""
    return [
        Message(
            seq, (seq + 1) // 2, "user" if seq % 2 else "assistant", text, seq * DAY_S,
            tokens=len(text),
        )
        for seq, text in enumerate(texts, 1)
    ]  # fmt: skip


class Choosing:
    """Returns what it was given."""

    def __init__(self, chosen: Any = ()) -> None:
        self.chosen = chosen

    def select(self, messages: Sequence[Message]) -> Any:
        del messages
        if isinstance(self.chosen, Exception):
            raise self.chosen
        return self.chosen


class Deciding:
    """Decides what it was given, over and over; `asked` counts the decisions."""

    def __init__(self, decision: Any = None) -> None:
        self.decision = decision
        self.asked = 0

    async def next_action(self, context: AgentContext) -> Any:
        del context
        self.asked += 1
        if isinstance(self.decision, Exception):
            raise self.decision
        if self.decision == "wait":
            await asyncio.Event().wait()
        return self.decision


class Broken:
    def __init__(self) -> None:
        raise ValueError(SECRET)

    def select(self, messages: object) -> None: ...


class Greedy:
    def __init__(self, ours: object, more: object) -> None: ...

    def select(self, messages: object) -> None: ...


class Misfit:
    """Has both methods, and neither as it should be."""

    async def select(self, messages: object) -> None: ...

    def next_action(self, context: object) -> None: ...


class Narrow:
    def select(self) -> None: ...

    async def next_action(self) -> None: ...


@pytest.fixture
def ours() -> FunctionsBasedAgent:
    model = ScriptedModel(deque([reply("ours")]))
    return FunctionsBasedAgent(model, prompt, toolbox_of().definitions, MAX_STEPS)


@pytest.fixture
def example(documented: Documented) -> Replacements:
    """Return what the feature of the page replaces."""
    return replaced_by([documented("features.md", "class LooksFirst").feature(None)])


def own(theirs: Deciding, ours: FunctionsBasedAgent, timeout_s: float = 5) -> OperatorAgent:
    return OperatorAgent(theirs, ours, timeout_s)


# The example of the page


def test_the_selector_of_the_page_shows_the_last_day(example: Replacements) -> None:
    messages = dialogue("old", "older?", "new", "newest")
    messages[2] = replace(messages[2], sent_at=messages[3].sent_at - 60)
    selector = selector_of(SETTINGS, example.selector)
    assert selector.select(messages) == tuple(messages[2:])
    assert selector.select([]) == ()


@pytest.mark.parametrize(("text", "looks"), [("When was that?", True), ("Hello", False)])
async def test_the_agent_of_the_page_looks_into_the_memory_first(
    example: Replacements,
    ours: FunctionsBasedAgent,
    context: AgentContext,
    *,
    text: str,
    looks: bool,
) -> None:
    context.user_message = replace(context.user_message, text=text)
    action = await agents_of(SETTINGS, ours, example.agent)().next_action(context)
    query = f'{{"query": "{text}"}}'
    looking = Action((ToolCall("look", "search_memory", query),))
    assert action == (looking if looks else FinishAction("ours"))


# What is refused at the start


@pytest.mark.parametrize(
    ("what", "kind", "why"),
    [
        ("selector", 86_400, "is not a class"),
        ("selector", Deciding, "needs the method `def select.self, messages.`"),
        ("selector", Misfit, "needs the method `def select"),
        ("selector", Narrow, "needs the method `def select"),
        ("selector", Greedy, "may require one argument, ours, or none"),
        ("selector", Broken, "Broken cannot be built .ValueError at test_operator_cl.*:[0-9]"),
        ("agent", Choosing, "needs the method `async def next_action.self, context.`"),
        ("agent", Misfit, "needs the method `async def"),
    ],
)
def test_a_class_that_cannot_be_used_is_refused_with_the_reason(
    ours: FunctionsBasedAgent, what: str, kind: Any, why: str
) -> None:
    with pytest.raises(UnusableClass, match=f"FEATURES: .*{why}") as refused:
        _ = selector_of(SETTINGS, kind) if what == "selector" else agents_of(SETTINGS, ours, kind)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("silent", "FEATURES: silent has no English sentence commands.hello"),
        ("looking", "FEATURES: looking has `file_steps` for 'video', which is no kind of file"),
        ("broken", f"FEATURES: {THEIRS}:broken cannot be built (RuntimeError at greeting_feature"),
        ("HERE", f"FEATURES: {THEIRS}:HERE cannot be imported (AttributeError); check"),
        ("Bow", f"FEATURES: {THEIRS}:Bow"),
    ],
)
async def test_a_mistake_in_a_feature_is_refused_with_what_to_do(
    memory: Memory, name: str, why: str
) -> None:
    services = services_of(memory, Settings(_env_file=None, features=f"{THEIRS}:{name}"))
    with pytest.raises(UnusableClass) as refused:
        await open_features(services)
    assert str(refused.value).startswith(why)
    assert "secret words" not in str(refused.value)


def test_a_behavior_of_an_operator_is_limited_to_the_chats_behind_its_path(memory: Memory) -> None:
    path = "tests.acceptance.operator_parts:Harbour"
    [berths] = built_behaviors([f"{path}@7", f"{path}@groups"], memory.scopes, None)
    covered = [berths.reach.covers(Scope.of_chat(chat)) for chat in (7, 8, -5)]
    assert covered == [True, False, True]


def test_two_features_cannot_replace_the_same() -> None:
    one = Feature(name="one", replaces=Replacements(selector=Choosing))
    two = Feature(name="two", replaces=Replacements(document_prompt="Cite.", selector=Misfit))
    assert replaced_by([one]) == one.replaces
    with pytest.raises(UnusableClass, match="two features replace `selector`"):
        replaced_by([one, two])


# A selector within our limits


@pytest.mark.parametrize(
    ("chosen", "shown"),
    [
        ([3, 4], [3, 4]),
        ([4, 3, 3], [3, 4]),  # in their order and once
        ([1, 2, 5, 6], [1, 2, 5, 6]),  # with a gap
        ([1, 2, 3, 4, 5, 6], [3, 4, 5, 6]),  # four messages are allowed
        ([5, 6, 7, 8], [5, 6]),  # 7 and 8 were not among the messages
        ([], []),
    ],
)
def test_a_selectors_choice_is_shown_within_our_limits(chosen: list[int], shown: list[int]) -> None:
    messages = dialogue(*"abcdefgh")
    ours = BlockWindowMessageSelector(4, 1_000, block=2)
    selector = OwnSelector(Choosing([messages[seq - 1] for seq in chosen]), ours)
    assert [each.seq for each in selector.select(messages[:6])] == shown


def test_a_selector_cannot_exceed_the_tokens_or_change_a_message() -> None:
    messages = dialogue("aaa", "bbb", "c", "d")
    forged = [replace(each, text="forged", tokens=0) for each in messages]
    ours = BlockWindowMessageSelector(10, 5, block=2)
    within = OwnSelector(Choosing(forged), ours).select(messages)
    assert within == ()  # an overhead of four tokens a message
    ours = BlockWindowMessageSelector(10, 12, block=2)
    assert OwnSelector(Choosing(forged), ours).select(messages) == tuple(messages[2:])


@pytest.mark.parametrize("chosen", [ValueError(SECRET), None, [SECRET]])
def test_if_a_selector_fails_ours_selects_and_the_log_has_no_words(chosen: object) -> None:
    messages = dialogue(*"abcd")
    ours = BlockWindowMessageSelector(2, 1_000, block=2)
    with capture_logs() as logged:
        assert OwnSelector(Choosing(chosen), ours).select(messages) == tuple(messages[2:])
    assert [(line["event"], line["what"]) for line in logged] == [("class failed", "selector")]
    assert SECRET not in str(logged)


# An agent within our limits


async def test_after_the_last_step_our_agent_answers(
    ours: FunctionsBasedAgent, context: AgentContext
) -> None:
    theirs = Deciding(Action((CALL,)))
    answer = await run_agent(own(theirs, ours), toolbox_of(), context)
    assert (answer, theirs.asked) == (FinishAction("ours"), MAX_STEPS)
    assert len(context.completed_steps) == MAX_STEPS


@pytest.mark.parametrize(
    "decision",
    [
        ValueError(SECRET),
        SECRET,
        FinishAction(5),  # type: ignore[arg-type]
        Action(()),
        Action((CALL,) * 65),
        Action((SECRET,)),  # type: ignore[arg-type]
        Action((replace(CALL, arguments={}),)),  # type: ignore[arg-type]
    ],
)
async def test_if_an_agent_fails_ours_decides_for_the_rest_of_the_turn(
    ours: FunctionsBasedAgent, context: AgentContext, decision: object
) -> None:
    theirs = Deciding(decision)
    agent = own(theirs, ours, timeout_s=0.01 if decision == "wait" else 60)
    with capture_logs() as logged:
        for _ in range(2):
            assert await agent.next_action(context) == FinishAction("ours")
    assert theirs.asked == 1
    assert [(line["event"], line["what"]) for line in logged] == [("class failed", "agent")]
    has_returned = not isinstance(decision, ValueError) and decision != "wait"
    assert (logged[0]["error"] == "next_action returned no action") == has_returned
    assert SECRET not in str(logged)


@pytest.mark.parametrize("error", [LeaseLost("gone"), ModelUnavailable("down")])
async def test_errors_that_end_a_turn_are_not_caught(
    ours: FunctionsBasedAgent, context: AgentContext, error: Exception
) -> None:
    with pytest.raises(type(error)):
        await own(Deciding(error), ours).next_action(context)


async def test_an_answer_of_an_operators_agent_needs_no_model(
    ours: FunctionsBasedAgent, context: AgentContext
) -> None:
    agent = own(Deciding(FinishAction("theirs")), ours)
    assert await run_agent(agent, toolbox_of(), context) == FinishAction("theirs")
