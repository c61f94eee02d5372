"""What a tool is: a name, what the model is told of it, typed arguments, and what it does."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from memory.behaviors.context import AgentContext


class Arguments(BaseModel):
    """Base of all tool arguments: flat, closed, and described for the model."""

    model_config = ConfigDict(extra="forbid", frozen=True)


A = TypeVar("A", bound=Arguments)


@dataclass(frozen=True, slots=True)
class ToolDefinition:
    """What the model is told of a tool; `parameters` is a JSON schema object."""

    name: str
    description: str
    parameters: Mapping[str, object]


class ToolError(Exception):
    """Raised by a tool with a text that the model may read: what was wrong, what would be right."""


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool. `run` gets validated arguments and returns what the model reads.

    `is_final` makes its output the reply, as it is. `name` and `description` speak to the model.
    `is_foreign` stands for output that may hold others' words, as all has that was fetched or
    looked up: what the model wants written after it, the person is asked about first. So does
    output that bears `wording.FOREIGN_MARK`.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, AgentContext], Awaitable[str]]
    is_final: bool = False
    is_untrusted: bool = True

    @property
    def definition(self) -> ToolDefinition:
        """Return what the model is told; equal for equal tools, so that prompts stay the same."""
        return ToolDefinition(self.name, self.description, _schema(self.arguments))


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    for noise in ("title", "description"):
        schema.pop(noise, None)
    properties: dict[str, dict[str, Any]] = schema.setdefault("properties", {})
    for described in properties.values():
        described.pop("title", None)
    return schema
