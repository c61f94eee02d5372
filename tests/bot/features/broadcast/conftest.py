"""A chat port on a scripted Bot API, and a Cluster."""

from tests.bot.telegram.conftest import api, client
from tests.memory.conftest import valkey

__all__ = ["api", "client", "valkey"]
