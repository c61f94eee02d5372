"""A context on a real, empty store, for tools of servers that are not ours."""

from tests.bot.agent.conftest import context, memory

__all__ = ["context", "memory"]
