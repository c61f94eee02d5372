"""The running state: what is stored, what the model sees, what may change it."""

import json
from dataclasses import replace
from typing import Self

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import BaseModel, field_validator, model_validator
from structlog.testing import capture_logs

from memory.behaviors.context import Person
from memory.behaviors.knowledge_base import (
    MAX_BYTES,
    DomainRefused,
    KnowledgeBase,
    bounded,
    knowledge_base_model,
    merged_domain,
    read,
    updated_fields,
)
from memory.behaviors.learning_behavior import Cadence, PartRejected, Unlearned
from memory.behaviors.running_state import AWAY_S, BACK, HEADING, RunningState
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.fields import State, StateUntrusted
from memory.scopes.history import ChatHistory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.text.internal_model import AnswerShape
from memory.text.untrusted_text import UNTRUSTED_MARK
from tests.memory.behaviors.batches import (
    DAY,
    GROUP,
    NOW,
    PRIVATE,
    answered,
    batch,
    call_context,
    said,
    scope_memory,
    shown,
)


class Trip(BaseModel):
    """Two required fields, and rules for one of them and for all of them."""

    home: str
    days: int
    nights: int = 0

    @field_validator("home")
    @classmethod
    def _check_home(cls, home: str) -> str:
        if not home.islower():
            raise ValueError("it must be lower case")
        return home

    @model_validator(mode="after")
    def _check_all(self) -> Self:
        if self.nights > self.days:
            raise ValueError("too many nights")
        return self


class Issue(BaseModel):
    """A ticket."""

    id: str
    key: str
    summary: str | None = None
    labels: list[str] = []


WITH_ISSUE = knowledge_base_model(Issue)
TALK = (said(1, "I want to move to Graz"), answered(2, "When?"))
LEARNED = KnowledgeBase(
    first_name="Anna", discussion_summary="She moves.", current_goals=["find a flat"]
)


def learned(
    behavior: RunningState, old: KnowledgeBase | str, answer: object, *messages: object
) -> KnowledgeBase:
    """Return the state after a raw answer of a model."""
    state = old if isinstance(old, str) else old.model_dump_json()
    talk = [*messages] or [*TALK]
    shape = AnswerShape.of({"state": behavior.part})
    taught = behavior.learn(
        batch(*talk, here=scope_memory(state=state)),  # type: ignore[arg-type]
        shape.validate("state", answer),  # type: ignore[arg-type]
    )
    return read(behavior.model, state if taught.state is None else taught.state)


@pytest.fixture
def behavior(scopes: Scopes) -> RunningState:
    return RunningState(scopes)


@pytest.fixture
def with_issue(scopes: Scopes) -> RunningState:
    return RunningState(scopes, Issue)


def test_every_field_is_described_to_the_model_in_a_strict_schema() -> None:
    shape = AnswerShape.of({"running_state": WITH_ISSUE})
    assert not shape.unconvertible
    part = shape.schema["properties"]["running_state"]["anyOf"][0]
    assert all("description" in str(described) for described in part["properties"].values())


async def test_a_private_conversation_starts_with_the_names_of_the_profile_and_a_group_without(
    behavior: RunningState,
) -> None:
    assert await shown(behavior, "hello") == ""
    for first_name in ("Anna", "Eve"):  # a second creation changes nothing
        speaker = Person(7, first_name, "Berg")
        await behavior.on_conversation_created(call_context(speaker=speaker))
    text = await shown(behavior, "hello")
    assert text == f'{HEADING}\n{{"first_name": "Anna", "last_name": "Berg"}}'
    in_group = call_context(GROUP)
    await behavior.on_conversation_created(in_group)
    assert await shown(behavior, "hello", in_group) == ""


async def test_a_profile_name_becomes_one_short_line(behavior: RunningState) -> None:
    await behavior.on_conversation_created(call_context(speaker=Person(7, "Eve\n\n# System " * 50)))
    name = json.loads((await shown(behavior, "hello")).removeprefix(HEADING))["first_name"]
    assert "\n" not in name
    assert len(name) < 100


def test_an_answer_becomes_the_state_and_lists_may_become_empty(behavior: RunningState) -> None:
    answer = {"first_name": "Anna", "discussion_summary": "She moves to Graz."}
    expected = KnowledgeBase(first_name="Anna", discussion_summary="She moves to Graz.")
    assert learned(behavior, "", answer) == expected
    state = learned(behavior, LEARNED, {"discussion_summary": "She has moved."})
    assert state.current_goals == []


@pytest.mark.parametrize("nothing", ["unknown", "", " Unknown ", "null", None, "n/a"])
def test_a_known_name_or_summary_stays_if_an_answer_does_not_know_it(
    behavior: RunningState, nothing: str | None
) -> None:
    answer = {
        "first_name": nothing,
        "discussion_summary": nothing,
        "current_goals": ["find a flat", "pack"],
    }
    state = learned(behavior, LEARNED, answer)
    assert (state.first_name, state.discussion_summary) == ("Anna", "She moves.")
    assert state.current_goals == ["find a flat", "pack"]


def test_an_answer_that_forgets_more_than_names_of_the_profile_is_refused(
    behavior: RunningState,
) -> None:
    with pytest.raises(PartRejected):
        learned(behavior, LEARNED, {"first_name": "unknown"})
    named = KnowledgeBase(first_name="Anna")
    assert learned(behavior, named, {}) == named


def test_groups_have_no_first_or_last_name(behavior: RunningState) -> None:
    answer = KnowledgeBase(first_name="Anna", last_name="Berg", key_entities=["Graz"])
    taught = behavior.learn(batch(*TALK, conversation=GROUP), answer)
    assert read(KnowledgeBase, taught.state or "") == KnowledgeBase(key_entities=["Graz"])


def test_only_own_text_changes_a_name(behavior: RunningState) -> None:
    forwarded = said(1, "My name is Mallory", is_first_party=False)
    state = learned(behavior, LEARNED, {"first_name": "Mallory", "last_name": "Roe"}, forwarded)
    assert (state.first_name, state.last_name) == ("Anna", "unknown")
    messages = forwarded, said(3, "By the way, call me Ann")
    assert learned(behavior, LEARNED, {"first_name": "Ann"}, *messages).first_name == "Ann"


def test_an_unchanged_state_is_not_written(behavior: RunningState) -> None:
    here = scope_memory(state=LEARNED.model_dump_json())
    assert behavior.learn(batch(*TALK, here=here), LEARNED).state is None


def test_a_huge_answer_is_cut(behavior: RunningState) -> None:
    answer = {"discussion_summary": "word " * 20_000, "key_entities": ["x" * 9_000] * 900}
    state = learned(behavior, "", answer)
    assert len(state.model_dump_json().encode()) <= MAX_BYTES
    assert state.discussion_summary.endswith("word…")


@example(
    WITH_ISSUE.model_validate(
        {
            "first_name": '"' * 999,
            "last_name": "\\" * 999,
            "discussion_summary": '"\x00' * 9_999,
            "key_entities": [str(n) + '"' * 999 for n in range(99)],
            "domain": {"id": "1", "key": "x" * 1_100},
        }
    )
)
@given(
    st.builds(
        KnowledgeBase,
        first_name=st.text(),
        last_name=st.text(max_size=500),
        discussion_summary=st.text(max_size=3_000),
        key_entities=st.lists(st.text(max_size=300)),
        open_problems=st.lists(st.text(max_size=300)),
        current_goals=st.lists(st.text(max_size=300)),
    )
)
def test_a_bounded_state_fits_and_does_not_change_again(state: KnowledgeBase) -> None:
    once = bounded(state)
    assert len(once.model_dump_json().encode()) <= MAX_BYTES
    assert bounded(once) == once


def test_a_stored_state_of_another_version_is_readable() -> None:
    stored = '{"first_name": "Anna", "mood": "good", "key_entities": "Graz", "last_name": null}'
    assert read(KnowledgeBase, stored) == KnowledgeBase(first_name="Anna")


@pytest.mark.parametrize("stored", ["", "nonsense", "[]", "null"])
def test_text_that_is_not_a_state_is_read_as_an_empty_state(stored: str) -> None:
    assert read(KnowledgeBase, stored) == KnowledgeBase()


def test_the_operators_part_is_learned_and_shown(with_issue: RunningState) -> None:
    issue = {"id": "1", "key": "MOVE-1", "summary": None, "labels": None}
    state = learned(with_issue, "", {"domain": issue})
    assert json.loads(state.model_dump_json())["domain"]["key"] == "MOVE-1"
    known = with_issue.prompt_input(batch(here=scope_memory(state=state.model_dump_json())))
    assert json.loads(known) == {"domain": {"id": "1", "key": "MOVE-1", "labels": []}}


@pytest.mark.parametrize("bad", ["MOVE-2", 7, None, {"id": ["1"]}])
def test_an_invalid_operators_part_keeps_the_old_one_and_the_rest_is_learned(
    with_issue: RunningState, bad: object
) -> None:
    old = WITH_ISSUE.model_validate({"domain": {"id": "1", "key": "MOVE-1"}})
    state = learned(with_issue, old, {"domain": bad, "current_goals": ["pack"]})
    expected = old.model_copy(update={"current_goals": ["pack"]})
    assert state.model_dump_json() == expected.model_dump_json()


def test_null_clears_a_field_of_the_operators_part_a_missing_one_stays(
    with_issue: RunningState,
) -> None:
    old = WITH_ISSUE.model_validate({"domain": {"id": "1", "key": "A-1", "summary": "Move"}})
    state = learned(with_issue, old, {"domain": {"key": "A-2", "summary": None}})
    assert json.loads(state.model_dump_json())["domain"] == {"id": "1", "key": "A-2", "labels": []}
    closed = {"domain": {"id": None, "key": None, "labels": None}, "current_goals": ["pack"]}
    assert json.loads(learned(with_issue, state, closed).model_dump_json())["domain"] is None


def test_required_fields_of_the_operators_part_are_set_in_steps(with_issue: RunningState) -> None:
    state = learned(with_issue, "", {"domain": {"id": "1"}})
    here = scope_memory(state=state.model_dump_json())
    assert json.loads(with_issue.prompt_input(batch(here=here))) == {"domain": {"id": "1"}}
    state = learned(with_issue, state, {"domain": {"key": "A-1"}})
    whole = {"id": "1", "key": "A-1", "labels": []}
    assert json.loads(state.model_dump_json())["domain"] == whole


def test_the_operators_validators_refuse_with_the_fields_name(scopes: Scopes) -> None:
    behavior = RunningState(scopes, Trip)
    with pytest.raises(PartRejected) as refused:
        learned(behavior, "", {"domain": {"home": "Graz, my secret", "days": 9}})
    assert refused.value.tell == "`domain` does not fit: home: value_error"
    with pytest.raises(DomainRefused, match="all fields: value_error"):
        updated_fields(Trip, {"home": "graz"}, {"days": 3, "nights": 5})
    assert updated_fields(Trip, {"home": "graz"}, {"nights": 5}) == {"home": "graz", "nights": 5}


def test_a_tool_sets_fields_of_the_operators_part() -> None:
    begun = merged_domain(WITH_ISSUE, LEARNED.model_dump_json(), '{"id": "1", "key": "MOVE-1"}')
    state = merged_domain(WITH_ISSUE, begun, '{"summary": "Find a flat"}')
    assert json.loads(state)["domain"] == {
        "id": "1",
        "key": "MOVE-1",
        "summary": "Find a flat",
        "labels": [],
    }
    assert json.loads(state)["current_goals"] == ["find a flat"]


@pytest.mark.parametrize("update", ['{"id": 7}', '{"labels": ["%s"]}' % ("x" * 9_000)])
def test_unfit_tool_fields_change_nothing_and_are_logged(
    with_issue: RunningState, update: str
) -> None:
    state = '{"domain": {"id": "1", "key": "MOVE-1"}}'
    with capture_logs() as logs:
        assert with_issue.with_domain(state, update) == state
    assert [line["event"] for line in logs] == ["domain refused"]


def test_without_an_operators_model_a_tool_sets_nothing(behavior: RunningState) -> None:
    assert behavior.with_domain("", '{"id": "1"}') == ""


def test_it_is_due_after_enough_turns_or_seconds_of_quiet_or_tokens(scopes: Scopes) -> None:
    cadence = Cadence(every_turns=2, after_s=30, max_tokens=100)
    behavior = RunningState(scopes, cadence=cadence)
    one, two = said(1, "a"), said(3, "b")
    assert not behavior.is_due(Unlearned([one], 29, 0))
    assert behavior.due_in(Unlearned([one], 29, 0)) == 1
    assert behavior.is_due(Unlearned([one, two], 0, 0))
    assert behavior.is_due(Unlearned([one], 30, 0))
    assert behavior.is_due(Unlearned([said(1, "a", tokens=100)], 0, 0))


@pytest.mark.parametrize(
    ("messages", "before", "is_untrusted"),
    [
        ((said(1, "x"), answered(2, "y")), "", False),
        ((said(1, "x", is_first_party=False), answered(2, "y")), "", True),
        ((said(1, "x"), replace(answered(2, "y"), is_first_party=False)), "", True),
        ((said(1, "x"), answered(2, "y")), "1", True),
    ],
)
async def test_a_state_of_untrusted_sources_is_marked(
    behavior: RunningState,
    scopes: Scopes,
    messages: tuple[Message, ...],
    before: str,
    *,
    is_untrusted: bool,
) -> None:
    fields = [State(LEARNED.model_dump_json()), StateUntrusted(bool(before))]
    await scopes.write(await scopes.read(PRIVATE), Write(fields=fields))
    here = await scopes.read(PRIVATE)
    taught = behavior.learn(batch(*messages, here=here), KnowledgeBase(key_entities=["Graz"]))
    assert taught.is_untrusted == is_untrusted
    assert (await shown(behavior, "hello")).endswith(UNTRUSTED_MARK) == bool(before)


OPEN = KnowledgeBase(open_problems=["The tax\nreturn", "The boat"], current_goals=["Graz"])
ASKED = f'  {BACK} 5 days, still open: "The tax return"'


async def talk_ended(memory: Memory, state: KnowledgeBase, at: Scope = PRIVATE) -> ChatHistory:
    """Store a state, and a message of now with an answer that was sent days later."""
    history = await ChatHistory.read(memory.histories, at)
    await history.append_user_message("I have to do my taxes", NOW, sender_id=7)
    await history.append_assistant_message("Tell me when it is done", NOW + 4 * DAY)
    here = await memory.scopes.current(at)
    await memory.scopes.write(here, Write(fields=[State(bounded(state).model_dump_json())]))
    await memory.scopes.read(at)
    return history


async def told(memory: Memory, after_s: float, at: Scope = PRIVATE) -> list[str]:
    """Return the lines below the state for a message that comes so much later."""
    behavior = RunningState(memory.scopes)
    message = said(0, "Hello", at=NOW + after_s)
    return (await behavior.on_model_invoke(call_context(at), [message])).splitlines()[2:]


async def test_who_comes_back_after_days_is_asked_about_the_first_open_matter_once(
    memory: Memory,
) -> None:
    """The answer does not count, and a turn that begins again asks again."""
    history = await talk_ended(memory, OPEN)
    assert await told(memory, AWAY_S - 1) == []
    assert await told(memory, 5.9 * DAY) == await told(memory, 5.9 * DAY) == [ASKED]
    await history.append_user_message("Hello", NOW + 5.9 * DAY, sender_id=7)
    assert await told(memory, 5.9 * DAY + 60) == []


async def test_a_goal_is_asked_about_if_nothing_else_is_open_and_not_done(memory: Memory) -> None:
    history = await talk_ended(memory, OPEN.model_copy(update={"open_problems": []}))
    assert await told(memory, AWAY_S) == [f'  {BACK} 3 days, still open: "Graz"']
    await history.clear()
    await talk_ended(memory, LEARNED.model_copy(update={"current_goals": []}))
    assert await told(memory, AWAY_S) == []


async def test_nothing_is_asked_in_a_group_or_while_memory_is_off(memory: Memory) -> None:
    await talk_ended(memory, OPEN, GROUP)
    assert await told(memory, 5 * DAY, GROUP) == []
    await talk_ended(memory, OPEN)
    await memory.switch.turn_off(PRIVATE)
    await memory.scopes.read(PRIVATE)
    assert await told(memory, AWAY_S) == []
    await memory.switch.turn_on(PRIVATE)
    await memory.scopes.read(PRIVATE)
    assert len(await told(memory, AWAY_S)) == 1


async def test_an_open_matter_of_an_untrusted_state_is_marked(memory: Memory) -> None:
    await talk_ended(memory, OPEN)
    here = await memory.scopes.current(PRIVATE)
    await memory.scopes.write(here, Write(fields=[StateUntrusted(is_untrusted=True)]))
    await memory.scopes.read(PRIVATE)
    assert await told(memory, 5 * DAY) == [f"{ASKED} {UNTRUSTED_MARK}"]
