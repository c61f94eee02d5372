"""Learns what one model of one server accepts, and asks in that form from then on.

A request begins with all that helps. When the server refuses it, the part that the refusal names is
left out, or the other API is tried. Nothing is remembered of a call that failed in the end, because
its refusals may have had another reason. Chat and internal calls share what is known.
"""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeVar
from urllib.parse import urlsplit

import structlog

from bot.model.dialects import CHAT, RESPONSES
from bot.model.model_errors import ContextTooLong, ModelRefused, PicturesRefused
from bot.model.wire import PROMPT, Dialect, Options

log = structlog.get_logger(__name__)

Api = Literal["auto", "chat", "responses"]
_Answer = TypeVar("_Answer")

_OPENAI = "api.openai.com"
_PROMPT_FIELDS = frozenset({"messages", "input"})
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


@dataclass(slots=True)
class ServerApi:
    """The API with which each model of a server begins; with `auto`, the last one that worked."""

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
class Accepted:
    """What a model accepts, as far as we know."""

    dialect: Dialect
    refused: frozenset[str] = frozenset()  # names of options
    left: frozenset[str] = frozenset()  # names of dialects
    only_without_effort: bool = False  # over chat completions it takes tools only without reasoning
    token_factor: int = 1  # of the token limit of an answer, because reasoning counts against it
    sees: bool = True  # it may take pictures


@dataclass(slots=True, eq=False)
class ServedModel:
    """One model of one server."""

    name: str
    origin: str  # names the model and its server
    _server: ServerApi
    reasons: bool = False  # an answer has cost tokens that were not shown
    _known: Accepted | None = None

    @property
    def accepted(self) -> Accepted:
        """The form with which the next request begins."""
        return self._known or Accepted(self._server.dialect)

    async def ask(
        self,
        groups_of: Callable[[Accepted], Sequence[Options]],
        send: Callable[[Dialect, Options], Awaitable[_Answer]],
    ) -> _Answer:
        """Return the answer to the first form of a request that the server does not refuse.

        `groups_of` gives the parts of the request, the least needed first; `send` makes one
        request with the option chosen of each. Raise the `ModelError` of the last form.
        """
        accepted = self.accepted
        while True:
            chosen = {}
            for group in groups_of(accepted):
                if name := next((each for each in group if each not in accepted.refused), ""):
                    chosen[name] = group[name]
            try:
                answer = await send(accepted.dialect, chosen)
            except ModelRefused as error:
                plainer = self._plainer(accepted, chosen, error)
                if plainer is None:
                    raise
                if plainer.sees < accepted.sees and groups_of(plainer) == groups_of(accepted):
                    raise  # it had no pictures: the server's text quotes a person
                accepted = plainer
            else:
                self._server.dialect = accepted.dialect
                if accepted is not self._known:
                    self._remember(accepted)
                return answer

    def raise_token_limit(self, factor: int) -> None:
        """Allow more tokens for each answer from now on, because reasoning took them all."""
        self._known = replace(self.accepted, token_factor=factor)

    def _plainer(self, accepted: Accepted, chosen: Options, error: ModelRefused) -> Accepted | None:
        """Return what may pass after a refusal; None if nothing is left to try."""
        if isinstance(error, PicturesRefused):
            return replace(accepted, sees=False) if accepted.sees else None
        dialect = accepted.dialect
        other, asks_for_other = (
            (RESPONSES, _ASK_RESPONSES) if dialect is CHAT else (CHAT, _ASK_CHAT)
        )
        can_leave = self._server.setting == "auto" and other.name not in accepted.left
        takes_effort = dialect is CHAT and not accepted.only_without_effort
        if takes_effort and error.objects_to("reasoning_effort") and error.says(_TOOLS):
            # If there turns out to be no Responses API, we come back and ask without effort.
            dialect = other if can_leave else dialect
            return replace(accepted, dialect=dialect, only_without_effort=True)

        # Does this server, or its model, not take this API?
        is_vague = error.may_concern_parameters
        is_missing = error.status in _PATH_STATUS
        has_no_path = is_missing and error.says(_NO_PATH)
        lacks_api = is_vague and is_missing and (dialect is RESPONSES or has_no_path)
        if can_leave and (lacks_api or error.says(asks_for_other)):
            return replace(accepted, dialect=other, left=accepted.left | {dialect.name})
        if has_no_path:
            return None

        # Leave out what the refusal names, else the least needed if it may be about any of them.
        optional = [name for name in chosen if name != PROMPT]
        blamed = [
            name
            for name in optional
            if any(map(error.objects_to, {name, *chosen[name]} - _PROMPT_FIELDS))
        ]
        if is_vague and not blamed and not isinstance(error, ContextTooLong):
            blamed = optional[:1]
        return replace(accepted, refused=accepted.refused.union(blamed)) if blamed else None

    def _remember(self, accepted: Accepted) -> None:
        before = self.accepted
        if self._known is None or accepted.dialect is not before.dialect:
            log.info("model answered", model=self.name, api=accepted.dialect.name)
        for name in sorted(accepted.refused - before.refused):
            parameter, setting = name, _SETTINGS.get(name)
            if "=" in name:
                setting, _, parameter = name.partition("=")
            log.warning("parameter dropped", parameter=parameter, setting=setting, model=self.name)
        if before.sees and not accepted.sees:
            log.warning("model takes no pictures", model=self.name)
        is_new = accepted.only_without_effort and not before.only_without_effort
        if is_new and accepted.dialect is CHAT:
            log.warning("reasoning dropped because of tools", model=self.name)
        self._known = replace(
            accepted,
            refused=accepted.refused | before.refused,
            token_factor=max(accepted.token_factor, before.token_factor),
            sees=accepted.sees and before.sees,
        )


def merged(options: Options) -> dict[str, Any]:
    """Return the fields that the options add to a request."""
    return {key: value for option in options.values() for key, value in option.items()}
