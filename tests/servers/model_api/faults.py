"""Faults that tests add: what goes wrong with a valid request.

A fault is an `ApiError`, a `Break` of the whole answer, a `StreamBreak` half-way through it, or a
`Quirk`: something that sparse servers do and that is no reason to fail.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto

from tests.servers.model_api.errors import ApiError
from tests.servers.model_api.requests import ApiRequest, ChatRequest, is_chat


class Break(Enum):
    """What the client gets instead of an answer."""

    HANG = auto()  # nothing, until the client goes
    DROP = auto()  # the connection is cut
    HTML = auto()  # a page with status 200, as behind a wrong base URL


class StreamBreak(Enum):
    """How a streamed answer ends after its first half."""

    CUT = auto()  # properly, without a finish reason
    STALL = auto()  # not at all, until the client goes
    DROP = auto()  # the connection is cut
    ERROR = auto()  # with an error as an event
    MALFORMED = auto()  # with an event that is no JSON
    GARBLED = auto()  # with an event that is no text
    MISSHAPEN = auto()  # with an event that is JSON of another shape


class Quirk(Enum):
    """What a streamed answer looks like on servers that follow the format loosely."""

    EMPTY_FIRST_CHUNK = auto()  # one without choices comes first (Azure)
    COMMENTS = auto()  # lines that begin with a colon, between events (OpenRouter)
    CRLF = auto()
    NO_INDEX = auto()  # neither on choices nor on calls; each call comes whole
    SAME_INDEX = auto()  # every call has index 0; each call comes whole (Gemini)
    NO_ID = auto()  # chunks have neither `id` nor `object`
    REASONING = auto()  # thoughts come first, as `reasoning_content` (DeepSeek, vLLM)
    NO_DONE = auto()
    NO_USAGE = auto()
    BARE_USAGE = auto()  # usage has neither cached nor reasoning tokens


Fault = ApiError | Break | StreamBreak | Quirk


@dataclass(slots=True)
class _Rule:
    fault: Fault
    when: Callable[[ApiRequest], bool]
    left: int | None


class Faults:
    """The faults to come, in the order in which they were added."""

    def __init__(self) -> None:
        self._rules: list[_Rule] = []

    def add(
        self, fault: Fault, *, times: int | None = 1, when: Callable[[ApiRequest], bool] = is_chat
    ) -> None:
        """Let the next `times` requests that `when` fits meet `fault`; None is every one.

        A request meets all quirks that fit, but only one of the others.
        """
        self._rules.append(_Rule(fault, when, times))

    def clear(self) -> None:
        self._rules.clear()

    def take(self, request: ApiRequest) -> tuple[Fault, ...]:
        """Return the faults that strike `request`, and count them."""
        met: list[Fault] = []
        for rule in self._rules:
            broken = any(not isinstance(fault, Quirk) for fault in met)
            if _fits(rule, request) and (isinstance(rule.fault, Quirk) or not broken):
                met.append(rule.fault)
                rule.left = None if rule.left is None else rule.left - 1
        return tuple(met)


def _fits(rule: _Rule, request: ApiRequest) -> bool:
    streamed = isinstance(request, ChatRequest) and request.stream
    possible = streamed or not isinstance(rule.fault, StreamBreak | Quirk)
    return rule.left != 0 and possible and rule.when(request)
