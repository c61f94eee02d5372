"""The JSON body of a request to `/v1/responses`, checked against the SDK's own types.

What the types cannot say is refused here too: bounds, parts that fit their role, and entries of
`input` that do not belong together.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

from openai.types.responses.response_create_params import ResponseCreateParamsStreaming
from pydantic import TypeAdapter, ValidationError
from pydantic_core import ErrorDetails

from bot.model.call import PromptMessage
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from tests.servers.model_api.bodies import schema_complaint
from tests.servers.model_api.errors import ApiError, bad_request, first_wrong, parsed
from tests.servers.model_api.requests import ChatRequest

Json = Mapping[str, Any]

MIN_OUTPUT_TOKENS = 16
_ROLES: dict[str, Literal["system", "user", "assistant"]] = {
    "developer": "system",
    "system": "system",
    "user": "user",
    "assistant": "assistant",
}
_OF_ASSISTANT = frozenset({"output_text", "refusal"})


def read_responses(body: bytes) -> ChatRequest:
    """Return the request in `body`; raise `ApiError` for what the wire format forbids."""
    raw: Json = parsed(body)
    _check_types(raw)
    _check_values(raw)
    form = raw.get("text", {}).get("format", {"type": "text"})
    choice = raw.get("tool_choice") or "auto"
    return ChatRequest(
        model=raw["model"],
        messages=tuple(_messages(raw)),
        tools=tuple(_tool(at, tool) for at, tool in enumerate(raw.get("tools", ()))),
        tool_choice=choice if isinstance(choice, str) else choice.get("name", "required"),
        response_format=form["type"],
        stream=bool(raw.get("stream")),
        include_usage=True,
        api="responses",
        effort=(raw.get("reasoning") or {}).get("effort") or "",
        max_output_tokens=raw.get("max_output_tokens") or 0,
        raw=raw,
    )


def input_entries(raw: Json) -> list[Json]:
    """Return the entries of `input`; a plain text is one message."""
    given = raw["input"]
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


@cache  # building it takes 0.1 s
def _adapter() -> TypeAdapter[ResponseCreateParamsStreaming]:
    return TypeAdapter(ResponseCreateParamsStreaming)


def _check_types(raw: Json) -> None:
    for name in ("model", "input"):
        if raw.get(name) in (None, ""):
            raise bad_request(f"Missing required parameter: '{name}'.", name)
    if raw.get("stream") not in (None, True, False):
        raise bad_request("Invalid type for 'stream': expected a boolean.", "stream")
    try:
        meant = {**raw, "input": _typed(raw["input"]), "stream": True}
        read = _adapter().validate_python(meant, strict=True, extra="forbid")
        errors = list(_late_errors(read))
    except ValidationError as error:
        errors = error.errors(include_url=False)
    if errors:
        raise first_wrong(errors)


def _typed(given: object) -> object:
    """Add `type` to messages, which may omit it, so that pydantic finds the branch of the union."""
    if not isinstance(given, list):
        return given
    return [
        {"type": "message", **entry} if isinstance(entry, dict) and "role" in entry else entry
        for entry in given
    ]


def _late_errors(value: object, path: tuple[int | str, ...] = ()) -> Iterator[ErrorDetails]:
    """Yield what is wrong in `Iterable` fields: pydantic checks them only when they are read."""
    if isinstance(value, str):
        return
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _late_errors(inner, (*path, name))
    elif isinstance(value, Iterable):
        try:
            for at, inner in enumerate(value):
                yield from _late_errors(inner, (*path, at))
        except ValidationError as error:
            for found in error.errors(include_url=False):
                found["loc"] = (*path, *found["loc"])
                yield found


def _check_values(raw: Json) -> None:
    bound = raw.get("max_output_tokens")
    if bound is not None and bound < MIN_OUTPUT_TOKENS:
        message = f"Invalid 'max_output_tokens': at least {MIN_OUTPUT_TOKENS} is needed."
        raise bad_request(message, "max_output_tokens", "integer_below_min_value")
    for name, maximum in (("temperature", 2), ("top_p", 1)):
        if not 0 <= (raw.get(name) or 0) <= maximum:
            raise bad_request(f"Invalid '{name}': expected a value from 0 to {maximum}.", name)
    if raw.get("previous_response_id"):
        raise bad_request("That previous response was not found.", "previous_response_id")
    form = raw.get("text", {}).get("format", {})
    if form.get("type") == "json_schema" and form.get("strict"):
        complaint = schema_complaint(form["schema"], strict=True)
        if complaint:
            message = f"Invalid schema for response_format '{form['name']}': {complaint}"
            raise bad_request(message, "text.format.schema", "invalid_json_schema")


def _messages(raw: Json) -> list[PromptMessage]:
    """Return the prompt in the form of chat completions; reasoning entries are only in `raw`."""
    messages: list[PromptMessage] = []
    if raw.get("instructions"):
        messages.append(PromptMessage("system", raw["instructions"]))
    for at, entry in enumerate(input_entries(raw)):
        match entry.get("type", "message"):
            case "message":
                text = _text(entry, f"input[{at}].content")
                messages.append(PromptMessage(_ROLES[entry["role"]], text))
            case "function_call":
                call = ToolCall(entry["call_id"], entry["name"], entry["arguments"])
                if not messages or messages[-1].role != "assistant":
                    messages.append(PromptMessage("assistant", ""))
                said = messages[-1]
                messages[-1] = replace(said, tool_calls=(*said.tool_calls, call))
            case "function_call_output":
                call_id = entry.get("call_id") or ""
                output = _text(entry, f"input[{at}].output", "output")
                messages.append(PromptMessage("tool", output, tool_call_id=call_id))
    return messages


def _text(entry: Json, path: str, name: str = "content") -> str:
    content = entry[name]
    if isinstance(content, str):
        return content
    for at, part in enumerate(content):
        if (part["type"] in _OF_ASSISTANT) != (entry.get("role") == "assistant"):
            raise bad_request(f"Invalid value: '{part['type']}'.", f"{path}[{at}]", "invalid_value")
    return "".join(part.get("text", "") for part in content)


def _tool(at: int, tool: Json) -> ToolDefinition:
    if tool["type"] != "function":
        raise bad_request(f"We have no tool '{tool['type']}'.", f"tools[{at}].type")
    parameters = tool["parameters"] or {"type": "object", "properties": {}}
    complaint = schema_complaint(parameters, strict=bool(tool["strict"]))
    if complaint:
        raise bad_request(
            f"Invalid schema for function '{tool['name']}': {complaint}",
            f"tools[{at}].parameters",
            "invalid_function_parameters",
        )
    return ToolDefinition(tool["name"], tool.get("description") or "", parameters)


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
