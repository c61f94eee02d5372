"""The log of the bot's calls and their answers, and the faults that tests add to them.

A fault refuses a call, delays it, drops it, or drops only its answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from tests.servers.bot_api.chats import Chat
from tests.servers.bot_api.errors import ApiError, flood
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


CarryOut = Callable[[], Awaitable[Answer]]


@dataclass(frozen=True, slots=True)
class FloodWait:
    """429; the call is not executed."""

    retry_after_s: int


@dataclass(frozen=True, slots=True)
class Refuse:
    """Any other refusal, with Telegram's text: `Refuse(400, "Bad Request: …")`."""

    status: int
    description: str


@dataclass(frozen=True, slots=True)
class ServerError:
    """An error on Telegram's side; the call is not executed."""

    status: int = 500


@dataclass(frozen=True, slots=True)
class Hang:
    """No answer for so long, then the connection breaks; the call is never executed."""

    seconds: float


@dataclass(frozen=True, slots=True)
class SlowAnswer:
    """The call is executed at once, but its answer comes late; the client may have given up."""

    seconds: float


@dataclass(frozen=True, slots=True)
class DropConnection:
    """The connection breaks before the call is executed."""


@dataclass(frozen=True, slots=True)
class SentThenDrop:
    """The call is executed, and the connection breaks before the answer."""


Fault = FloodWait | Refuse | ServerError | Hang | SlowAnswer | DropConnection | SentThenDrop


async def strike(fault: Fault, carry_out: CarryOut) -> Answer | None:
    """Return what the client gets instead of a plain answer; `None` cuts its connection."""
    match fault:
        case FloodWait(retry_after_s):
            return Answer.refusing(flood(retry_after_s))
        case Refuse(status, description):
            return Answer.refusing(ApiError(status, description))
        case ServerError(status):
            return Answer.refusing(ApiError(status, HTTPStatus(status).phrase))
        case SlowAnswer(seconds):
            answer = await carry_out()
            await asyncio.sleep(seconds)
            return answer
        case SentThenDrop():
            await carry_out()
        case Hang(seconds):
            await asyncio.sleep(seconds)
        case DropConnection():
            pass
    return None


@dataclass(slots=True)
class Rule:
    """Which calls a fault strikes, and how many of them are left; `None` means all."""

    fault: Fault
    method: str
    chat_id: int | None
    text: str
    left: int | None

    def fits(self, call: Call) -> bool:
        return (
            self.left != 0
            and self.method.lower() in ("", call.method.lower())
            and self.chat_id in (None, call.chat_id)
            and self.text in call.text
        )


class Faults:
    """The faults to come; if several rules fit a call, the oldest applies."""

    def __init__(self) -> None:
        self._rules: list[Rule] = []

    def add(
        self,
        fault: Fault,
        *,
        method: str = "",
        chat: Chat | None = None,
        text: str = "",
        times: int | None = 1,
    ) -> Rule:
        """Let `fault` strike the next `times` calls of `method` to `chat` that contain `text`."""
        rule = Rule(fault, method, chat.id if chat else None, text, times)
        self._rules.append(rule)
        return rule

    def clear(self) -> None:
        self._rules.clear()

    def next_for(self, call: Call) -> Fault | None:
        """Return the fault that strikes this call, and count it."""
        rule = next((rule for rule in self._rules if rule.fits(call)), None)
        if rule is None:
            return None
        if rule.left is not None:
            rule.left -= 1
        return rule.fault
