"""The log of the bot's calls and their answers."""

from dataclasses import dataclass

from bot.playground.bot_api.http import ApiAnswer as Answer
from bot.playground.bot_api.parameters import Parameters

__all__ = ["Answer", "Call"]


@dataclass(slots=True, eq=False)
class Call:
    """One call; `at` is in Unix seconds.

    `answer` is None while there is none, and stays so when the connection was cut.
    """

    method: str
    given: Parameters
    at: float
    answer: Answer | None = None

    @property
    def chat_id(self) -> int:
        """The chat that the call is about; 0 when there is none."""
        return self.given.integer("chat_id")

    @property
    def text(self) -> str:
        """The text or caption that the call carries; empty when there is none."""
        return self.given.values.get("text") or self.given.values.get("caption", "")
