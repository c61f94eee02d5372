"""What the feature adds to the bot: the tools `current_time` and `calculate`."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from pydantic import Field

from bot.feature import Feature, Services
from bot.features.tools.calculator import CALCULATE
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError


def feature(services: Services) -> Feature:
    """Return the feature."""
    return Feature(name="tools", tools=(current_time_tool(services.settings.timezone), CALCULATE))


class CurrentTimeArguments(Arguments):
    """The time zone."""

    timezone: str | None = Field(
        default=None, description="IANA name such as Europe/Berlin; else the bot's", max_length=64
    )


def current_time_tool(default_zone: tzinfo) -> Tool[CurrentTimeArguments]:
    """Return the tool; it uses `default_zone` if the model names no zone."""

    async def run(arguments: CurrentTimeArguments, context: AgentContext) -> str:
        zone, name = default_zone, arguments.timezone
        try:
            zone = ZoneInfo(name) if name else default_zone
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
