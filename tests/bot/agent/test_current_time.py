"""The tool shows the time in any time zone, and explains an unknown zone."""

from zoneinfo import ZoneInfo

import pytest

from bot.agent.own_tools import CurrentTimeArguments, current_time_tool
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolError


async def time_in(context: AgentContext, timezone: str | None) -> str:
    tool = current_time_tool(ZoneInfo("Europe/Berlin"))
    return await tool.run(CurrentTimeArguments(timezone=timezone), context)


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
