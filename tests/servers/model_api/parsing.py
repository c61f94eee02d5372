"""JSON bodies into dictionaries, and what pydantic finds wrong into refusals that name it."""

import orjson
from pydantic_core import ErrorDetails

from tests.servers.model_api.errors import ApiError, bad_request

_PARSE = "We could not parse the JSON body of your request."
_BRANCHES = frozenset({"str", "int", "list", "none"})
"""Names that pydantic gives to the branches of a union; the others begin with a capital."""


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
