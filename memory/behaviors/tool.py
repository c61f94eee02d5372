"""What a tool is: a name and a description for the model, typed arguments, and a function."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from memory.behaviors.context import AgentContext


class Arguments(BaseModel):
    """Base of all tool arguments: flat, without unknown fields, each described for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)

_NOT_SHOWN = ("title", "minLength", "maxLength")


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """A tool as the model sees it; `parameters` is a JSON schema object."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolError(Exception):
    """Raised by a tool. The model reads the text: what was wrong, and what would be right."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool. `run` takes validated arguments and returns the text that the model reads.

    It may also return a `ToolOutput` with files, which are sent to the person with the answer.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, AgentContext], Awaitable[str]]
    is_final: bool = False  # its output is the reply, unchanged
    # Its output may hold text of others, as all that is fetched or looked up. After such output, or
    # one with `UNTRUSTED_MARK`, the person is asked before anything is written.
    is_untrusted: bool = True
    is_reader: bool = False  # it only reads: no answer means it that says it saved something
    uses_memory: bool = True  # it does not run off the record
    timeout_s: float = 0  # how long a call may take; 0: as long as `TOOL_TIMEOUT_S` says
    parameters: Mapping[str, object] | None = None  # the JSON schema, if not that of `arguments`

    @property
    def definition(self) -> ToolDefinition:
        """Return the definition; the same tool gives the same one, so prompts stay cacheable."""
        parameters = self.parameters or _schema(self.arguments)
        return ToolDefinition(self.name, self.description, parameters)


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    for noise in ("title", "description", "additionalProperties"):
        schema.pop(noise, None)
    schema["properties"] = {
        name: _shown(described) for name, described in schema.get("properties", {}).items()
    }
    return schema


def _shown(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the model is told of an argument, in few tokens.

    What is optional is left out rather than empty or null. Lengths are only checked.
    """
    shown = {name: value for name, value in described.items() if name not in _NOT_SHOWN}
    if shown.get("default", ...) in (None, "", 0):
        del shown["default"]
    match [each for each in shown.get("anyOf", ()) if each != {"type": "null"}]:
        case [only]:
            del shown["anyOf"]
            return _shown(only) | shown
    return shown
