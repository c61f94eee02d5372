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

    `is_final`: its output is the reply, unchanged. `is_untrusted`: its output may hold text of
    others, as everything that was fetched or looked up does. After such output the person is asked
    before anything is written. The same holds for output that contains `UNTRUSTED_MARK`.
    `uses_memory`: it reads or writes what is remembered, so it does not run off the record.
    """

    name: str
    description: str
    arguments: type[A]
    run: Callable[[A, AgentContext], Awaitable[str]]
    is_final: bool = False
    is_untrusted: bool = True
    uses_memory: bool = True

    @property
    def definition(self) -> ToolDefinition:
        """Return the definition; the same tool gives the same one, so prompts stay cacheable."""
        return ToolDefinition(self.name, self.description, _schema(self.arguments))


def _schema(arguments: type[Arguments]) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    for noise in ("title", "description"):
        schema.pop(noise, None)
    properties: dict[str, dict[str, Any]] = schema.setdefault("properties", {})
    for described in properties.values():
        described.pop("title", None)
    return schema
