"""JSON bodies into dictionaries, and what pydantic finds wrong into api.openai.com's refusals."""

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


def first_wrong(first: ErrorDetails) -> ApiError:
    """Return the refusal for one thing that pydantic found wrong."""
    param = spelled(first["loc"])
    match first["type"]:
        case "missing":
            message, code = f"Missing required parameter: '{param}'.", "missing_required_parameter"
        case "extra_forbidden":
            message, code = f"Unknown parameter: '{param}'.", "unknown_parameter"
        case "literal_error":
            expected = first["ctx"]["expected"]
            message = f"Invalid value: '{first['input']}'. Supported values are: {expected}."
            code = "invalid_value"
        case "too_short":
            message, code = f"Invalid '{param}': empty array.", "empty_array"
        case "too_long":
            message, code = f"Invalid '{param}': array too long.", "array_above_max_length"
        case "string_too_long":
            message, code = f"Invalid '{param}': string too long.", "string_above_max_length"
        case "string_pattern_mismatch":
            pattern = first["ctx"]["pattern"]
            message = f"Invalid '{param}': string does not match pattern '{pattern}'."
            code = "invalid_value"
        case _:
            message, code = f"Invalid value for '{param}': {first['msg']}.", "invalid_type"
    return bad_request(message, param, code)


def spelled(loc: tuple[int | str, ...]) -> str:
    """Write a location as `messages[0].role`, without the branches of unions."""
    path = ""
    for part in loc:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part.isidentifier() and part[0].islower() and part not in _BRANCHES:
            path += f".{part}" if path else part
    return path
