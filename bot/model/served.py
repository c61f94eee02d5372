"""What one model of one server has turned out to take; chat and internal calls share it.

Nothing is remembered of a call that failed in the end: its refusals may have another reason.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeVar
from urllib.parse import urlsplit

import structlog

from bot.model.completions import CHAT
from bot.model.dialects import Dialect, Options, blamed_for, chosen_of
from bot.model.model_errors import ModelRefused
from bot.model.responses import RESPONSES

log = structlog.get_logger(__name__)

Api = Literal["auto", "chat", "responses"]
Answer = TypeVar("Answer")

_OPENAI = "api.openai.com"
_SETTINGS = {
    "max_completion_tokens": "REPLY_TOKENS",
    "max_tokens": "REPLY_TOKENS",
    "max_output_tokens": "REPLY_TOKENS",
    "safety_identifier": "OPENAI_SAFETY_IDENTIFIER",
    "service_tier": "OPENAI_SERVICE_TIER",
    "verbosity": "OPENAI_VERBOSITY",
}
_ASK_RESPONSES = re.compile(
    r"v1/responses|in the v1/chat/completions endpoint|not a chat model", re.IGNORECASE
)
_ASK_CHAT = re.compile(r"(use|supported in|only) \S*chat[/ ]completions", re.IGNORECASE)
_NO_PATH = re.compile(
    r"invalid url|not found|cannot post|no (such )?route|(unexpected|unknown|unsupported) endpoint"
    r"|method not allowed|unknown (path|url)",
    re.IGNORECASE,
)
_TOOLS = re.compile(r"\btools?\b", re.IGNORECASE)
_PATH_STATUS = (404, 405)
_MORE_ROOM = 4


@dataclass(slots=True)
class ServerApi:
    """The API with which a model of a server begins; with `auto` the last one that was taken."""

    setting: Api
    dialect: Dialect

    @classmethod
    def of(cls, base_url: str, setting: Api) -> "ServerApi":
        """Begin with Responses at OpenAI itself, and with chat completions anywhere else."""
        host = urlsplit(base_url).hostname or ""
        is_openai = host == _OPENAI or host.endswith(f".{_OPENAI}")
        speaks_responses = setting == "responses" or (setting == "auto" and is_openai)
        return cls(setting, RESPONSES if speaks_responses else CHAT)


@dataclass(frozen=True, slots=True)
class Taken:
    """What a model takes, as far as it is known.

    `refused` are names of options, `left` those of dialects. `only_without_effort`: over chat
    completions it takes tools only while it does not think. `room` multiplies the bound of an
    answer, because thoughts count against it.
    """

    dialect: Dialect
    refused: frozenset[str] = frozenset()
    left: frozenset[str] = frozenset()
    only_without_effort: bool = False
    room: int = 1


class ServedModel:
    """One model of one server; `origin` names both."""

    def __init__(self, name: str, base_url: str, server: ServerApi) -> None:
        self.name = name
        self.origin = f"{base_url} {name}"
        self._server = server
        self._known: Taken | None = None

    @property
    def taken(self) -> Taken:
        """What the next request begins with."""
        return self._known or Taken(self._server.dialect)

    async def ask(
        self,
        groups_of: Callable[[Taken], Sequence[Options]],
        send: Callable[[Dialect, Options], Awaitable[Answer]],
    ) -> Answer:
        """Return an answer, asked in the first form that the server does not refuse.

        Raise the `ModelError` of the last form.
        """
        taken = self.taken
        while True:
            chosen = chosen_of(groups_of(taken), taken.refused)
            try:
                answer = await send(taken.dialect, chosen)
            except ModelRefused as error:
                plainer = self._plainer(taken, chosen, error)
                if plainer is None:
                    raise
                taken = plainer
            else:
                self._remember(taken)
                return answer

    def make_room(self) -> None:
        """Leave more room for thoughts from now on."""
        self._known = replace(self.taken, room=_MORE_ROOM)

    def _plainer(self, taken: Taken, chosen: Options, error: ModelRefused) -> Taken | None:
        """Return what may be taken after a refusal; None when there is nothing left to try."""
        other = RESPONSES if taken.dialect is CHAT else CHAT
        can_leave = self._server.setting == "auto" and other.name not in taken.left
        if _wants_no_effort(error, taken):
            # The way back to chat completions, should there be no Responses, is known as well.
            dialect = other if can_leave else taken.dialect
            return replace(taken, dialect=dialect, only_without_effort=True)
        if can_leave and _belongs_elsewhere(error, taken.dialect):
            return replace(taken, dialect=other, left=taken.left | {taken.dialect.name})
        if _has_no_path(error):
            return None
        blamed = blamed_for(error, chosen)
        return replace(taken, refused=taken.refused | blamed) if blamed else None

    def _remember(self, taken: Taken) -> None:
        before = self.taken
        if self._known is None or taken.dialect is not before.dialect:
            log.info("model answers", model=self.name, api=taken.dialect.name)
        for name in sorted(taken.refused - before.refused):
            parameter, setting = name, _SETTINGS.get(name)
            if "=" in name:
                setting, _, parameter = name.partition("=")
            log.warning("parameter dropped", parameter=parameter, setting=setting, model=self.name)
        if taken.only_without_effort and not before.only_without_effort and taken.dialect is CHAT:
            log.warning("tools only without reasoning", model=self.name)
        self._known = replace(
            taken, refused=taken.refused | before.refused, room=max(taken.room, before.room)
        )
        self._server.dialect = taken.dialect


def _wants_no_effort(error: ModelRefused, taken: Taken) -> bool:
    """Whether chat completions are refused because a model that thinks was offered tools."""
    is_new = taken.dialect is CHAT and not taken.only_without_effort
    return is_new and error.objects_to("reasoning_effort") and error.says(_TOOLS)


def _belongs_elsewhere(error: ModelRefused, dialect: Dialect) -> bool:
    """Whether this server, or its model, does not take this API."""
    if error.says(_ASK_RESPONSES if dialect is CHAT else _ASK_CHAT):
        return True
    is_missing = error.status in _PATH_STATUS and error.may_concern_parameters
    return is_missing and (dialect is RESPONSES or _has_no_path(error))


def _has_no_path(error: ModelRefused) -> bool:
    return error.status in _PATH_STATUS and error.says(_NO_PATH)
