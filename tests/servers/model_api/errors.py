"""The errors that api.openai.com answers with, with its own texts if we know them.

ApiError    any answer that is not 200

And what is wrong with a body: no JSON, or the first thing that pydantic found.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

import orjson
from pydantic_core import ErrorDetails
from starlette.responses import JSONResponse, PlainTextResponse, Response

_OPENAI: Mapping[str, tuple[int, object]] = {}
_PARSE = "We could not parse the JSON body of your request."
_BRANCHES = frozenset({"str", "int", "list", "none"})
"""Names that pydantic gives to the branches of a union; the others begin with a capital."""


@dataclass(eq=False)
class ApiError(Exception):
    """Raised when a request is refused; added to `Faults` it refuses a good one."""

    status: int
    message: str
    kind: str = "invalid_request_error"
    param: str = ""
    code: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, object]:
        """Return the body, which is also the form of an error inside a stream."""
        error = {
            "message": self.message,
            "type": self.kind,
            "param": self.param or None,
            "code": self.code or None,
        }
        return {"error": error}

    def response(self, overrides: Mapping[str, tuple[int, object]] = _OPENAI) -> Response:
        """Return what goes over the wire.

        `overrides` are another server's statuses and bodies, by the error's code, or by its status
        if it has no code.
        """
        found = overrides.get(self.code or str(self.status))
        if found is None:
            return JSONResponse(self.as_json(), self.status, headers=self.headers)
        status, body = found
        if isinstance(body, str):
            return PlainTextResponse(body, status)
        text = orjson.dumps(body).replace(b"{param}", self.param.encode())
        return Response(text, status, media_type="application/json")


def bad_request(message: str, param: str = "", code: str = "") -> ApiError:
    """Return the 400 that names the parameter at fault."""
    return ApiError(400, message, param=param, code=code)


def content_filtered() -> ApiError:
    """Return the 400 for a prompt that a filter refuses, with Azure's text."""
    return bad_request(
        "The response was filtered due to the prompt triggering Azure OpenAI's content management "
        "policy. Please modify your prompt and retry. To learn more about our content filtering "
        "policies please read our documentation: https://go.microsoft.com/fwlink/?linkid=2198766",
        "prompt",
        "content_filter",
    )


def moderation_blocked() -> ApiError:
    """Return the 400 for a picture that OpenAI's filter refuses."""
    message = "Your request was rejected by the safety system. safety_violations=[violence]."
    return ApiError(400, message, "image_generation_user_error", code="moderation_blocked")


def wrong_key(key: str) -> ApiError:
    """Return the 401 for a missing or wrong key, which it quotes in part as the real one does."""
    if not key:
        return ApiError(401, "You didn't provide an API key.")
    shown = f"{key[:3]}***{key[-3:]}" if len(key) > 8 else "***"
    return ApiError(401, f"Incorrect API key provided: {shown}.", code="invalid_api_key")


def rate_limited(retry_after_s: float = 1) -> ApiError:
    """Return the 429 that says how long to wait."""
    return ApiError(
        429,
        f"Rate limit reached for requests. Please try again in {retry_after_s:g}s.",
        kind="requests",
        code="rate_limit_exceeded",
        headers={"retry-after": f"{retry_after_s:g}"},
    )


def server_error() -> ApiError:
    """Return the 500 for a failure inside the server."""
    message = "The server had an error while processing your request. Sorry about that!"
    return ApiError(500, message, kind="server_error")


def parsed(body: bytes) -> dict[str, object]:
    """Return the JSON object in `body`; raise `ApiError` when there is none."""
    try:
        raw = orjson.loads(body)  # which refuses lone surrogates, as a strict server does
    except orjson.JSONDecodeError:
        raise bad_request(_PARSE) from None
    if not isinstance(raw, dict):
        raise bad_request(_PARSE)
    return raw


def first_wrong(errors: list[ErrorDetails]) -> ApiError:
    """Return the refusal for the first thing that pydantic found wrong.

    Of a union, such as an entry of `input` over `/responses`, it names the whole.
    """
    param = spelled(errors[0]["loc"])
    if errors[0]["type"] == "extra_forbidden":
        return unknown(param)
    return bad_request(f"Invalid value for '{param}': {errors[0]['msg']}.", param, "invalid_value")


def unknown(param: str) -> ApiError:
    """Return the refusal for a parameter that the API does not have."""
    return bad_request(f"Unknown parameter: '{param}'.", param, "unknown_parameter")


def spelled(loc: tuple[int | str, ...]) -> str:
    """Write a location as `messages[0].role`, without the branches of unions."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() and part[0].islower() and part not in _BRANCHES:
            path += f".{part}" if path else part
    return path
