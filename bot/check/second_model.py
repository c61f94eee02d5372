"""The second model, asked for the same things as the first one, with its own settings' names."""

from dataclasses import replace

from bot.check.chat_model import check_chat
from bot.check.rows import Row, Rows
from config.settings import Settings

_NAMES = {
    "OPENAI_MEMORY_MODEL": "FALLBACK_MODEL",
    "OPENAI_MODEL": "FALLBACK_MODEL",
    "OPENAI_BASE_URL": "FALLBACK_BASE_URL",
    "OPENAI_API_KEY": "FALLBACK_API_KEY",
}


async def check_second(settings: Settings) -> Rows:
    """Yield a row for each thing that turns and internal calls ask of it."""
    async for row in check_chat(in_place_of_first(settings)):
        yield _renamed(row)


def in_place_of_first(settings: Settings) -> Settings:
    """Return settings that make the second model the only one."""
    return settings.model_copy(
        update={
            "openai_model": settings.fallback_model,
            "openai_memory_model": settings.fallback_model,
            "openai_base_url": settings.fallback_base_url,
            "openai_api_key": settings.fallback_api_key,
            "fallback_model": None,
            # These are about the first model: the second one is asked plainly.
            "openai_api": "auto",
            "openai_reasoning": None,
            "openai_memory_reasoning": None,
            "openai_verbosity": None,
            "openai_service_tier": None,
        }
    )


def _renamed(row: Row) -> Row:
    advice = row.advice
    for name, other in _NAMES.items():
        advice = advice.replace(name, other)
    return replace(row, what=f"Second {row.what[0].lower()}{row.what[1:]}", advice=advice)
