"""What the feature adds to the bot: the tools `current_time` and `calculate`."""

from datetime import datetime
from zoneinfo import ZoneInfo

from pydantic import Field

from bot.feature import Feature, Services
from bot.features.tools.calculator import CALCULATE
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError


def feature(_: Services) -> Feature:
    """Return the feature."""
    return Feature(name="tools", tools=(current_time_tool(), CALCULATE))


class CurrentTimeArguments(Arguments):
    """The time zone."""

    timezone: str | None = Field(
        default=None, description="IANA name such as Europe/Berlin; else the chat's", max_length=64
    )


def current_time_tool() -> Tool[CurrentTimeArguments]:
    """Return the tool; it uses the zone in which this chat counts days if the model names none."""

    async def run(arguments: CurrentTimeArguments, context: AgentContext) -> str:
        zone, name = context.call_context.zone, arguments.timezone
        try:
            zone = ZoneInfo(name) if name else zone
        except (KeyError, ValueError, OSError) as error:
            advice = "use an IANA name such as Asia/Tokyo"
            raise ToolError(f"unknown time zone {name!r}; {advice}") from error
        now = datetime.fromtimestamp(context.now, zone)
        return f"{now.strftime('%A')}, {now.isoformat(timespec='seconds')} ({zone})"

    return Tool(
        "current_time",
        "Tell the current date, weekday and time.",
        CurrentTimeArguments,
        run,
        is_untrusted=False,
        is_reader=True,
        uses_memory=False,
    )
