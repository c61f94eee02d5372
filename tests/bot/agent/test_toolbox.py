"""Calls run concurrently within their limits, and errors go back to the model as plain text."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from structlog.testing import capture_logs

from bot.agent.agent import ToolLimits
from memory.behaviors.behavior import FunctionNameClash
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import Action, ToolResult
from memory.behaviors.tool import Tool, ToolError
from memory.scopes.writes import SetDomain
from memory.store.errors import LeaseLost, StoreError
from memory.text.tokens import SHORTENED
from memory.text.untrusted_text import UNTRUSTED_MARK
from tests.bot.agent.conftest import LIMITS, Echoed, calls, echo, tool, toolbox_of
from tests.memory.conftest import TOKENS

SECRET = "redis://:password@host"
A = '{"text": "a"}'


class Endless:
    """A tool that never returns; the events say that it began, and that it was cancelled."""

    def __init__(self) -> None:
        self.began, self.cancelled = asyncio.Event(), asyncio.Event()

    async def __call__(self, arguments: Echoed, _: AgentContext) -> str:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return arguments.text


Results = tuple[ToolResult, ...]
Run = Callable[..., Awaitable[Results]]


@pytest.fixture
def run(context: AgentContext) -> Run:
    """Run an action as the next step, with these tools or with `echo`; return its results."""

    async def run(action: Action, *tools: Tool[Any], limits: ToolLimits = LIMITS) -> Results:
        step = await toolbox_of(*tools, limits=limits).run(action, context)
        context.completed_steps.append(step)
        return step.results

    return run


async def test_results_have_the_calls_order(run: Run) -> None:
    results = await run(calls(A, '{"text": "b", "times": 2}'))
    assert results == (ToolResult("0", "a"), ToolResult("1", "bb"))


async def test_calls_of_an_action_run_at_once(run: Run) -> None:
    met = asyncio.Barrier(3)

    async def meet(arguments: Echoed, _: AgentContext) -> str:
        await met.wait()
        return arguments.text

    results = await run(calls(A, A, A, name="meet"), tool("meet", meet))
    assert [result.text for result in results] == ["a"] * 3


def test_two_tools_with_one_name_are_refused() -> None:
    with pytest.raises(FunctionNameClash, match=r"two tools are named echo$"):
        toolbox_of(tool("echo", echo), tool("other", echo), tool("echo", echo))


def test_definitions_have_the_order_of_the_tools() -> None:
    toolbox = toolbox_of(tool("b", echo), tool("a", echo))
    assert [definition.name for definition in toolbox.definitions] == ["b", "a"]


# Mistakes of the model

TWENTY_TWO = "Error: wrong arguments: 22 errors"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("{not json", "Error: wrong arguments: arguments: Invalid JSON: "),
        ("[]", "Error: wrong arguments: arguments: Input should be an object"),
        ('"\ud800"', "Error: wrong arguments: arguments: "),
        ("", "Error: wrong arguments: text: Field required"),
        ("{}", "Error: wrong arguments: text: Field required"),
        ('{"text": 5}', "Error: wrong arguments: text: Input should be a valid string"),
        (
            '{"text": "a", "times": 9}',
            "Error: wrong arguments: times: Input should be less than or equal to 3",
        ),
        (
            '{"text": "a", "colour": 1}',
            "Error: wrong arguments: colour: Extra inputs are not permitted",
        ),
        ('{"times": 0}', "Error: wrong arguments: text: Field required; times: Input should be "),
        (json.dumps(dict.fromkeys("abcdefghijklmnopqrstu")), TWENTY_TWO),
    ],
)
async def test_the_model_hears_of_wrong_arguments(run: Run, arguments: str, expected: str) -> None:
    [result] = await run(calls(arguments))
    assert result.failed
    assert result.text.startswith(expected)


async def test_a_call_of_an_unknown_tool_gets_the_names_of_the_tools(run: Run) -> None:
    [result] = await run(calls("{}", name="shout"), tool("echo", echo), tool("other", echo))
    assert result == ToolResult(
        "0", "Error: there is no tool 'shout'; there are: echo, other", failed=True
    )


async def test_a_wrong_call_affects_no_other(run: Run) -> None:
    assert [result.failed for result in await run(calls("{}", A))] == [True, False]


# Errors of tools


@pytest.mark.parametrize(
    ("error", "told", "logged"),
    [
        (ToolError("the moon has no time zone"), "the moon has no time zone", []),
        (RuntimeError(SECRET), "echo failed; try without it", [("tool failed", "echo")]),
    ],
)
async def test_the_model_gets_a_tools_error_but_not_the_text_of_another_exception(
    run: Run, error: Exception, told: str, logged: list[tuple[str, str]]
) -> None:
    async def fail(_: Echoed, __: AgentContext) -> str:
        raise error

    with capture_logs() as logs:
        [result] = await run(calls(A), tool("echo", fail))
    assert result == ToolResult("0", f"Error: {told}", failed=True)
    assert [(line["event"], line["tool"]) for line in logs] == logged


@pytest.mark.parametrize(("limit_s", "own_s"), [(0.05, 0), (600, 0.05)])
async def test_a_tool_that_hangs_is_stopped_at_its_time_limit(
    run: Run, limit_s: float, own_s: float
) -> None:
    limits = ToolLimits(max_calls_per_tool=3, timeout_s=limit_s, max_output_tokens=50)
    hanging = replace(tool("hang", hang := Endless()), timeout_s=own_s)
    [result] = await run(calls(A, name="hang"), hanging, limits=limits)
    assert result == ToolResult("0", "Error: hang took too long and was stopped", failed=True)
    assert hang.cancelled.is_set()


@pytest.mark.parametrize("lost", [LeaseLost("c:7:0"), StoreError("away")], ids=["lease", "store"])
async def test_a_lost_lease_or_store_ends_the_run_with_all_calls(run: Run, lost: Exception) -> None:
    wait = Endless()

    async def wait_or_lose(arguments: Echoed, context: AgentContext) -> str:
        if arguments.text == "lose":
            raise lost
        return await wait(arguments, context)

    with pytest.raises(type(lost)):
        await run(calls(A, '{"text": "lose"}'), tool("echo", wait_or_lose))
    assert wait.cancelled.is_set()


async def test_a_cancelled_run_ends_its_tools(run: Run) -> None:
    running = asyncio.ensure_future(run(calls(A), tool("echo", wait := Endless())))
    await wait.began.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert wait.cancelled.is_set()


# Limits


async def test_a_tool_runs_at_most_as_often_as_its_limit_allows(run: Run) -> None:
    """Three calls are allowed: two in the first step, and one of the two in the second.

    A later step does not check the arguments of the steps before it again.
    """
    ran, checked = list[str](), list[object]()

    class Checked(Echoed):
        def model_post_init(self, _: object) -> None:
            checked.append(self)

    async def count(arguments: Echoed, _: AgentContext) -> str:
        ran.append(arguments.text)
        return "ran"

    tools = Tool("count", "Counts.", Checked, count), tool("echo", echo)
    await run(calls('{"text": "1"}', '{"text": "2"}', name="count"), *tools)
    second = await run(calls('{"text": "3"}', '{"text": "4"}', name="count"), *tools)
    other = await run(calls('{"text": "echo"}'), *tools)
    assert (ran, len(checked)) == (["1", "2", "3"], 4)
    assert second == (
        ToolResult("0", "ran"),
        ToolResult("1", "Error: count may run 3 times for one answer, and did", failed=True),
    )
    assert other == (ToolResult("0", "echo"),)


async def test_a_call_with_wrong_arguments_does_not_count_as_a_run(run: Run) -> None:
    await run(calls("{}", "{}", "{}"))
    assert [result.failed for result in await run(calls(A, A, A))] == [False] * 3


# The id of a test is in the environment of the servers that it starts, so it has to be short.
@pytest.mark.parametrize(
    "text", ["word " * 200_000, "x" * 1_000_000, "😀" * 300_000], ids=["words", "letters", "emoji"]
)
async def test_a_megabyte_of_output_is_shortened_to_its_limit_with_a_mark(
    run: Run, text: str
) -> None:
    [result] = await run(calls(json.dumps({"text": text})))
    assert not result.failed
    assert SHORTENED in result.text
    assert 40 <= TOKENS.count(result.text) <= 50


async def test_an_error_is_shortened_as_well(run: Run) -> None:
    [result] = await run(calls("{}", name="shout " * 1000))
    assert result.failed
    assert TOKENS.count(result.text) <= 50


# Final tools


async def test_only_a_final_tool_that_did_not_fail_ends_a_run_and_its_output_is_not_shortened(
    context: AgentContext,
) -> None:
    toolbox = toolbox_of(tool("echo", echo), tool("last", echo, is_final=True))
    long = json.dumps({"text": "word " * 500})
    actions = (calls(A), calls("{}", name="last"), calls(long, name="last"))
    final = [toolbox.final_output(await toolbox.run(each, context)) for each in actions]
    assert final == [None, None, "word " * 500]


async def test_a_write_of_an_operators_tool_asks_first_after_untrusted_text(
    run: Run, context: AgentContext
) -> None:
    async def note(arguments: Echoed, context: AgentContext) -> str:
        context.writes.append(SetDomain(arguments.text))
        return UNTRUSTED_MARK

    noting = replace(tool("note", note), is_untrusted=False)
    for number in ("1", "2\u2066"):
        [result] = await run(calls(f'{{"text": "{number}"}}', name="note"), noting)
        assert result.is_untrusted
    asker = context.user_message.sender_id
    assert context.writes == [SetDomain("1"), SetDomain("2", asks_first=True, sender_id=asker)]
