"""Fixtures: a context on a real, empty store."""

from tests.bot.agent.conftest import context, memory

__all__ = ["context", "memory"]
