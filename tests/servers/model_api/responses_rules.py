"""How the entries of a Responses request must fit together, with api.openai.com's texts."""

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
    """Raise `ApiError` when entries do not belong together, or parameters do not."""
    entries = input_entries(asked.raw)
    _check_parameters(asked)
    for at, entry in enumerate(entries):
        _check_id(at, entry)
    _check_calls(entries)
    _check_reasoning(asked, entries, server)


def _check_parameters(asked: ChatRequest) -> None:
    names = [tool.name for tool in asked.tools]
    if len(set(names)) < len(names):
        raise bad_request("Tool names must be unique.", "tools")
    if not names and asked.tool_choice == "required":
        message = "Tool choice 'required' must be specified with 'tools' parameter."
        raise bad_request(message, "tool_choice")
    if asked.tool_choice not in ("auto", "none", "required", *names):
        message = f"Tool choice 'function' not found in 'tools' parameter: {asked.tool_choice}."
        raise bad_request(message, "tool_choice")
    if asked.response_format == "json_object" and not any(
        "json" in str(entry.get("content")).lower() for entry in input_entries(asked.raw)
    ):
        raise bad_request(
            "Response input messages must contain the word 'json' in some form to use "
            "'text.format' of type 'json_object'.",
            "input",
        )


def _check_id(at: int, entry: Json) -> None:
    prefix = _PREFIXES.get(entry.get("type", "message"))
    given = entry.get("id")
    if prefix and given and not given.startswith(prefix):
        raise bad_request(
            f"Invalid 'input[{at}].id': '{given}'. Expected an ID that begins with '{prefix}'.",
            f"input[{at}].id",
            "invalid_value",
        )


def _check_calls(entries: Sequence[Json]) -> None:
    """Every output comes after its call, and every call has one."""
    waiting: set[str] = set()
    for entry in entries:
        call_id = entry.get("call_id") or ""
        if entry.get("type") == "function_call":
            waiting.add(call_id)
        elif entry.get("type") == "function_call_output" and call_id not in waiting:
            message = f"No tool call found for function call output with call_id {call_id}."
            raise bad_request(message, "input")
        else:
            waiting.discard(call_id)
    if waiting:
        message = f"No tool output found for function call {min(waiting)}."
        raise bad_request(message, "input")


def _check_reasoning(asked: ChatRequest, entries: Sequence[Json], server: str) -> None:
    for at, entry in enumerate(entries):
        if entry.get("type") != "reasoning":
            continue
        given = entry["id"]
        if not entry.get("encrypted_content") and asked.raw.get("store") is False:
            message = (
                f"Item with id '{given}' not found. Items are not persisted when `store` is set "
                "to false. Try again with `store` set to true, or remove this item from your input."
            )
            raise ApiError(404, message, param="input")
        if entry.get("encrypted_content") not in (None, encrypted(given, server)):
            message = (
                f"The encrypted content for item {given} could not be verified. Reason: Encrypted "
                "content could not be decrypted or parsed."
            )
            raise bad_request(message, code="invalid_encrypted_content")
        if not _follows(entries[at + 1 :]):
            message = (
                f"Item '{given}' of type 'reasoning' was provided without its required following "
                "item."
            )
            raise bad_request(message, "input")


def _follows(rest: Sequence[Json]) -> bool:
    """Tell whether these thoughts are followed by what the model did after them."""
    following = rest[0] if rest else {}
    kind = following.get("type", "message")
    return kind in ("function_call", "reasoning") or following.get("role") == "assistant"
