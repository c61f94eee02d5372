"""The reminder tools refuse what no reminder can be, in words that the model can act on."""

from dataclasses import replace
from datetime import UTC

import pytest

from memory.behaviors.call_context import CallContext, Person
from memory.behaviors.context import AgentContext
from memory.behaviors.reminder_tools import ReminderTools
from memory.behaviors.tool import ToolError
from memory.memory import Memory
from memory.message import Message
from memory.reminders.reminders import MAX_OPEN
from memory.scopes.history import ChatHistory
from tests.memory.reminders.test_reminders import reminder, store
from tests.memory.turns import ANN, HERE

NOW = 1_790_000_000.0
"""2026-09-21 14:13:20 UTC."""


async def context_of(memory: Memory, text: str = "Remind me") -> AgentContext:
    history = await ChatHistory.read(memory.histories, HERE)
    message = Message(0, 0, "user", text, NOW, ANN, "Ann", (31,), 3)
    call_context = CallContext(HERE, Person(ANN, "Ann", language="de"), NOW)
    return AgentContext(HERE, history, NOW, message, call_context=call_context)


async def called(memory: Memory, context: AgentContext, name: str, **arguments: object) -> str:
    """Return what a tool says, also if it refuses."""
    tools = ReminderTools(memory.reminders, memory.time_zones, UTC)
    (tool,) = [each for each in tools.functions if each.name == name]
    try:
        return await tool.run(tool.arguments.model_validate(arguments), context)
    except ToolError as error:
        return f"Error: {error}"


async def test_a_reminder_in_minutes_needs_no_zone_and_names_its_request(memory: Memory) -> None:
    context = await context_of(memory)
    for _ in range(2):  # a model that repeats itself sets one reminder
        said = await called(memory, context, "set_reminder", text=" Tea ", in_minutes=20)
        assert said.startswith("Set for Monday 2026-09-21T14:33+00:00 (UTC)")
    (tea,) = context.reminders.added
    assert (tea.text, tea.due, tea.person, tea.message_id) == ("Tea", NOW + 1_200, ANN, 31)
    assert (tea.language, tea.is_open) == ("de", True)


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({}, "give exactly one of at, in_minutes and cron"),
        ({"at": "2027-01-01T09:00", "in_minutes": 5}, "give exactly one"),
        ({"at": "2026-09-21T13:00"}, "that time has passed; now it is Monday 2026-09-21T16:13+02"),
        ({"at": "2033-01-01T09:00"}, "that is more than five years away"),
        ({"at": "tomorrow"}, "that is no time; write it as 2031-05-24T09:00"),
        ({"in_minutes": 5, "text": " "}, "text says nothing"),
        ({"in_minutes": -5}, "that time has passed"),
        ({"in_minutes": 10**30}, "that is more than five years away"),
        ({"cron": "*/10 * * * *"}, "hourly at most"),
        (
            {"at": "2027-01-01T09:00", "time_zone": "Atlantis"},
            "unknown time zone; use an IANA name",
        ),
    ],
)
async def test_what_no_reminder_can_be_is_refused(
    memory: Memory, arguments: dict[str, object], why: str
) -> None:
    context = await context_of(memory)
    await memory.time_zones.store_zone(ANN, "Europe/Berlin")
    said = await called(memory, context, "set_reminder", **{"text": "Tea", **arguments})
    assert said.startswith("Error: ")
    assert why in said
    assert context.reminders.added == []


async def test_a_person_has_at_most_fifty_open_reminders(memory: Memory) -> None:
    await store(memory, *(reminder() for _ in range(MAX_OPEN - 1)))
    context = await context_of(memory)
    said = [
        await called(memory, context, "set_reminder", text=f"Tea {n}", in_minutes=9)
        for n in range(2)
    ]
    assert [each.partition(" ")[0] for each in said] == ["Set", "Error:"]
    (one, *_) = await memory.reminders.list_open(HERE, ANN)
    said = [await called(memory, context, "cancel_reminder", id=one.id) for _ in range(2)]
    assert said == ["Cancelled: Call Ben"] * 2
    assert [each.id for each in context.reminders.cancelled] == [one.id]
    assert (await called(memory, context, "set_reminder", text="x", in_minutes=9))[:3] == "Set"


async def test_only_single_people_and_only_in_their_own_words_set_reminders(
    memory: Memory,
) -> None:
    context = await context_of(memory)
    channel = replace(context.call_context, speaker=Person()) if context.call_context else None
    said = await called(
        memory, replace(context, call_context=channel), "set_reminder", text="x", in_minutes=5
    )
    assert said.startswith("Error: only a person")
    context.user_message = replace(context.user_message, is_first_party=False)
    said = await called(memory, context, "set_reminder", text="Tea", in_minutes=5)
    assert said.startswith("Not set yet, for Monday")
    assert [each.is_open for each in context.reminders.added] == [False]
    await store(memory, reminder())
    (one,) = await memory.reminders.list_open(HERE)
    said = await called(memory, context, "cancel_reminder", id=one.id)
    assert "only the person may cancel it, with /reminders" in said
    assert context.reminders.cancelled == []
