"""The JSON bodies of requests: read strictly into typed values, refused as api.openai.com does.

This checks single fields, and the schemas of tools and of structured output. `rules` checks how
messages, tools and parameters fit together.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from bot.model.call import PromptMessage
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition
from tests.servers.model_api.errors import bad_request, first_wrong, parsed, unknown
from tests.servers.model_api.requests import ChatRequest, EmbeddingsRequest

# Parameters that we let pass unread
_PASSED = frozenset(
    """
    audio frequency_penalty logit_bias logprobs metadata modalities n parallel_tool_calls prediction
    presence_penalty prompt_cache_key prompt_cache_options prompt_cache_retention safety_identifier
    seed service_tier stop store top_logprobs user verbosity web_search_options
    """.split()  # noqa: SIM905 - a list of quoted names is harder to read
)
_Name = Annotated[str, Field(max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NOT_STRICT = frozenset(
    """
    allOf contains default dependentRequired dependentSchemas else if not oneOf patternProperties
    prefixItems propertyNames then unevaluatedProperties uniqueItems
    """.split()  # noqa: SIM905 - a list of quoted names is harder to read
)
"""Keywords that strict mode does not know."""


class _Wire(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class _Part(_Wire):
    model_config = ConfigDict(extra="allow")
    type: str
    text: str = ""


class _Function(_Wire):
    name: str
    arguments: str


class _ToolCall(_Wire):
    id: str
    type: Literal["function"]
    function: _Function


class _Message(_Wire):
    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | list[_Part] | None = None
    name: Annotated[str, Field(max_length=64, pattern=r"^[^\s<|\\/>]+$")] | None = None
    refusal: str | None = None
    tool_calls: Annotated[list[_ToolCall], Field(min_length=1)] | None = None
    tool_call_id: str | None = None

    @property
    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text for part in self.content)
        return self.content or ""


class _Definition(_Wire):
    name: _Name
    description: str = ""
    parameters: dict[str, object] = Field(default={"type": "object"})
    strict: bool | None = None


class _Tool(_Wire):
    type: Literal["function"]
    function: _Definition


class _ChosenName(_Wire):
    name: str


class _ChosenTool(_Wire):
    type: Literal["function"]
    function: _ChosenName


class _OutputSchema(_Wire):
    name: _Name
    description: str | None = None
    schema_: Annotated[dict[str, object], Field(alias="schema")]
    strict: bool | None = None


class _ResponseFormat(_Wire):
    type: Literal["text", "json_object", "json_schema"]
    json_schema: _OutputSchema | None = None


class _StreamOptions(_Wire):
    include_usage: bool = False


class _Chat(_Wire):
    model_config = ConfigDict(extra="allow")
    model: Annotated[str, Field(min_length=1)]
    messages: Annotated[list[_Message], Field(min_length=1)]
    tools: Annotated[list[_Tool], Field(min_length=1, max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | _ChosenTool | None = None
    response_format: _ResponseFormat | None = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    reasoning_effort: Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"] | None = (
        None
    )


class _Embeddings(_Wire):
    model: Annotated[str, Field(min_length=1)]
    input: str | list[str]
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Field(ge=1, le=3072)] | None = None
    user: str | None = None


def read_chat(body: bytes) -> ChatRequest:
    """Return the request in `body`; raise `ApiError` for what the wire format forbids."""
    raw = parsed(body)
    read = _validated(_Chat, raw)
    for name in read.model_extra or ():
        if name not in _PASSED:
            raise unknown(name)
    if read.response_format:
        _check_output(read.response_format)
    choice = read.tool_choice or "auto"
    return ChatRequest(
        model=read.model,
        messages=tuple(_message(at, message) for at, message in enumerate(read.messages)),
        tools=tuple(_tool(at, tool.function) for at, tool in enumerate(read.tools or ())),
        tool_choice=choice if isinstance(choice, str) else choice.function.name,
        response_format=read.response_format.type if read.response_format else "text",
        stream=bool(read.stream),
        include_usage=bool(read.stream_options and read.stream_options.include_usage),
        effort=read.reasoning_effort or "",
        max_output_tokens=read.max_completion_tokens or read.max_tokens or 0,
        raw=raw,
    )


def read_embeddings(body: bytes) -> EmbeddingsRequest:
    """Return the request in `body`; raise `ApiError` for what the wire format forbids."""
    raw = parsed(body)
    read = _validated(_Embeddings, raw)
    return EmbeddingsRequest(
        model=read.model,
        texts=(read.input,) if isinstance(read.input, str) else tuple(read.input),
        encoding_format=read.encoding_format,
        dimensions=read.dimensions or 0,
        raw=raw,
    )


def _message(at: int, message: _Message) -> PromptMessage:
    if message.content is None and not (message.role == "assistant" and message.tool_calls):
        raise bad_request(
            "Invalid value for 'content': expected a string, got null.", f"messages[{at}].content"
        )
    return PromptMessage(
        role="system" if message.role == "developer" else message.role,
        content=message.text,
        tool_calls=tuple(
            ToolCall(call.id, call.function.name, call.function.arguments)
            for call in message.tool_calls or ()
        ),
        tool_call_id=message.tool_call_id or "",
    )


def _tool(at: int, definition: _Definition) -> ToolDefinition:
    complaint = schema_complaint(definition.parameters, strict=bool(definition.strict))
    if complaint:
        raise bad_request(
            f"Invalid schema for function '{definition.name}': {complaint}",
            f"tools[{at}].function.parameters",
            "invalid_function_parameters",
        )
    return ToolDefinition(definition.name, definition.description, definition.parameters)


def _check_output(output: _ResponseFormat) -> None:
    wanted = output.json_schema
    if output.type != "json_schema" or not (wanted and wanted.strict):
        return
    complaint = schema_complaint(wanted.schema_, strict=True)
    if complaint:
        raise bad_request(
            f"Invalid schema for response_format '{wanted.name}': {complaint}", "response_format"
        )


_Body = TypeVar("_Body", bound=_Wire)


def _validated(body: type[_Body], raw: dict[str, object]) -> _Body:
    try:
        return body.model_validate(raw)
    except ValidationError as error:
        raise first_wrong(error.errors(include_url=False)) from None


def schema_complaint(schema: object, *, strict: bool) -> str:
    """Return what is wrong with a schema whose root must be an object; empty when nothing is."""
    if not isinstance(schema, Mapping) or schema.get("type") != "object":
        return "the root must be an object"
    return next(_complaints(schema, strict=strict), "")


def _complaints(schema: object, *, strict: bool) -> Iterator[str]:
    """Walk a schema and what it contains, outermost first."""
    if not isinstance(schema, Mapping):
        yield f"{schema!r} is no schema"
        return
    kinds, properties = schema.get("type", []), schema.get("properties", {})
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not _TYPES.issuperset(kinds):
        yield f"{kinds!r} is no type"
        return
    if not isinstance(properties, Mapping):
        yield "'properties' must be an object"
        return
    if "array" in kinds and "items" not in schema:
        yield "an array needs items"
    if strict:
        for name in sorted(_NOT_STRICT & schema.keys()):
            yield f"'{name}' is not permitted"
        if schema.keys().isdisjoint({"type", "anyOf", "$ref"}):
            yield "a type is needed"
        required = schema.get("required")
        is_closed = isinstance(required, list) and set(required) == properties.keys()
        if "object" in kinds and not (is_closed and schema.get("additionalProperties") is False):
            yield "an object must be closed and require all its properties"
    inner = [*properties.values(), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()]
    for each in (*inner, schema["items"]) if "items" in schema else inner:
        yield from _complaints(each, strict=strict)
