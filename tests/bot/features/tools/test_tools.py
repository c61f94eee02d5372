"""The tools that need no memory: only arithmetic is calculated; the time is told of any zone."""

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.features.tools.calculator import CalculateArguments, evaluate
from bot.features.tools.feature import CurrentTimeArguments, current_time_tool
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolError
from tests.work import ratio

NO_SUM = "not an expression"
TOO_BIG = "no such number"


def test_an_expression_has_the_right_value() -> None:
    sums = Path(__file__).with_name("sums.txt").read_text("utf-8").splitlines()
    expected = dict(each.split(" = ") for each in sums)
    assert {each: evaluate(each) for each in expected} == expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        *((text, "division by zero") for text in ("1 / 0", "5 % 0", "1 // 0", "0 ** -1")),
        *((text, TOO_BIG) for text in ("sqrt(-1)", "ln(0)", "1e999", "e ** 800", "10 ** 400")),
        *((text, TOO_BIG) for text in ("factorial(2.5)", "factorial(-1)", "factorial(1001)")),
        ("(-8) ** (1 / 3)", "not a real number"),
        ("sqrt", "not a real number"),
        *((text, NO_SUM) for text in ("two plus two", "1 +", "5!", "3,5 + 1", "()", "max()")),
    ],
)
def test_an_expression_without_a_value_gets_an_explanation(expression: str, why: str) -> None:
    with pytest.raises(ToolError, match=why):
        evaluate(expression)


def test_nothing_but_arithmetic_is_evaluated() -> None:
    for expression in Path(__file__).with_name("no_sums.txt").read_text("utf-8").splitlines():
        with pytest.raises(ToolError, match=NO_SUM):
            evaluate(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "9 ** 9 ** 9",
        "(2 ** 9999) ** 9999",
        "factorial(10 ** 9)",
        "round(5, -1000000000)",
        "round(5, 1000000000)",
        "*".join(["2 ** 9999"] * 25),
        "**".join(["99"] * 60),
        "-" * 299 + "1",
        "(" * 149 + "1" + ")" * 149,
        "(" * 300,
    ],
)
def test_no_expression_takes_much_more_time_than_a_long_sum(expression: str) -> None:
    def shown(expression: str) -> str:
        try:
            return evaluate(expression)
        except ToolError as refusal:
            return str(refusal)

    assert len(shown(expression)) < 250
    assert ratio(lambda: shown(expression), lambda: shown("1+" * 149 + "1"), 20) < 20


def test_an_expression_has_a_length_limit() -> None:
    with pytest.raises(ValidationError):
        CalculateArguments(expression="1" * 301)


@given(st.text(alphabet="0123456789.+-*/%()e, ^esqrtlogmaxpiround'\"_[]{}:=<>", max_size=60))
def test_every_text_is_evaluated_to_a_number_or_refused(text: str) -> None:
    with suppress(ToolError):
        float(evaluate(text))


async def time_in(context: AgentContext, timezone: str | None) -> str:
    call = replace(context.call_context, zone=ZoneInfo("Europe/Berlin"))
    here = replace(context, call_context=call)
    return await current_time_tool().run(CurrentTimeArguments(timezone=timezone), here)


@pytest.mark.parametrize(
    ("timezone", "expected"),
    [
        (None, "Wednesday, 2025-11-12T13:00:00+01:00 (Europe/Berlin)"),
        ("", "Wednesday, 2025-11-12T13:00:00+01:00 (Europe/Berlin)"),
        ("UTC", "Wednesday, 2025-11-12T12:00:00+00:00 (UTC)"),
        ("Pacific/Kiritimati", "Thursday, 2025-11-13T02:00:00+14:00 (Pacific/Kiritimati)"),
    ],
)
async def test_the_output_has_weekday_date_time_and_zone(
    context: AgentContext, timezone: str | None, expected: str
) -> None:
    assert await time_in(context, timezone) == expected


@pytest.mark.parametrize(
    "timezone", ["Mars/Olympus", "Europe", "../../etc/passwd", "/etc/localtime", "a\0b", "é", "."]
)
async def test_an_unknown_zone_gets_an_explanation(context: AgentContext, timezone: str) -> None:
    with pytest.raises(ToolError, match="unknown time zone '"):
        await time_in(context, timezone)
