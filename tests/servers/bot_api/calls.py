"""The log of the bot's calls and their answers."""

from collections.abc import Mapping
from dataclasses import dataclass

from tests.servers.bot_api.errors import ApiError
from tests.servers.bot_api.parameters import Parameters


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back: an HTTP status and the JSON body."""

    status: int
    body: Mapping[str, object]

    @classmethod
    def giving(cls, result: object) -> "Answer":
        return cls(200, {"ok": True, "result": result})

    @classmethod
    def refusing(cls, error: ApiError) -> "Answer":
        body = {"ok": False, "error_code": error.status, "description": error.description}
        parameters = {"parameters": error.parameters} if error.parameters else {}
        return cls(error.status, body | parameters)

    @property
    def ok(self) -> bool:
        return self.status == 200


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
