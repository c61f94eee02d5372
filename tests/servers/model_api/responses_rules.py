"""How the entries of a Responses request must fit together."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tests.servers.model_api.errors import ApiError, bad_request
from tests.servers.model_api.requests import ChatRequest
from tests.servers.model_api.responses_bodies import input_entries

Json = Mapping[str, Any]

_PREFIXES = {"function_call": "fc", "message": "msg", "reasoning": "rs"}


def encrypted(reasoning_id: str, server: str) -> str:
    """Return the encrypted thoughts of a reasoning entry, which only `server` can read."""
    return "gAAAAA" + hashlib.sha256(f"{server} {reasoning_id}".encode()).hexdigest()


def check_responses(asked: ChatRequest, server: str) -> None:
    """Raise `ApiError` when entries do not belong together."""
    entries = input_entries(asked.raw)
    for at, entry in enumerate(entries):
        _check_id(at, entry)
    _check_reasoning(asked, entries, server)


def _check_id(at: int, entry: Json) -> None:
    prefix = _PREFIXES.get(entry.get("type", "message"))
    given = entry.get("id")
    if prefix and given and not given.startswith(prefix):
        message = f"Invalid 'input[{at}].id': '{given}'. It must begin with '{prefix}'."
        raise bad_request(message, f"input[{at}].id", "invalid_value")


def _check_reasoning(asked: ChatRequest, entries: Sequence[Json], server: str) -> None:
    for at, entry in enumerate(entries):
        if entry.get("type") != "reasoning":
            continue
        given = entry["id"]
        if not entry.get("encrypted_content") and asked.raw.get("store") is False:
            message = f"Item with id '{given}' not found: `store` is set to false."
            raise ApiError(404, message, param="input")
        if entry.get("encrypted_content") not in (None, encrypted(given, server)):
            message = f"The encrypted content for item {given} could not be verified."
            raise bad_request(message, code="invalid_encrypted_content")
        if not _follows(entries[at + 1 :]):
            message = f"Item '{given}' was provided without its required following item."
            raise bad_request(message, "input")


def _follows(rest: Sequence[Json]) -> bool:
    """Tell whether these thoughts are followed by what the model did after them."""
    following = rest[0] if rest else {}
    kind = following.get("type", "message")
    return kind in ("function_call", "reasoning") or following.get("role") == "assistant"
