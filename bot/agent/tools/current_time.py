"""`current_time`: date and time in any time zone."""

from datetime import datetime, tzinfo
from zoneinfo import ZoneInfo

from pydantic import Field

from memory.behaviors.context import AgentContext
from memory.behaviors.tool import Arguments, Tool, ToolError


class CurrentTimeArguments(Arguments):
    """The time zone."""

    timezone: str | None = Field(
        default=None, description="IANA name such as Europe/Berlin; else the bot's", max_length=64
    )


def current_time_tool(default_zone: tzinfo) -> Tool[CurrentTimeArguments]:
    """Return the tool; it uses `default_zone` if the model names no zone."""

    async def run(arguments: CurrentTimeArguments, context: AgentContext) -> str:
        zone = _zone(arguments.timezone) if arguments.timezone else default_zone
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


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise ToolError(
            f"unknown time zone {name!r}; use an IANA name such as Asia/Tokyo"
        ) from error
