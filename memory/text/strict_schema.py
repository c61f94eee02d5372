"""The JSON schema of a pydantic model in the dialect of strict structured output.

Servers accept only a part of JSON Schema. This is the part that all of them accept: properties are
required and nullable, objects are closed, references are written out, and few keywords are used.
Limits of a field go into its description. A model that does not fit is refused with a reason.

`openai.lib._pydantic.to_strict_json_schema` does less: it is private, keeps references and limits
that some servers refuse, leaves optional fields without null, and explains no refusal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic import BaseModel
from pydantic.errors import PydanticInvalidForJsonSchema

Schema = dict[str, Any]

_NULL: Schema = {"type": "null"}
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
_LIMITS = (
    "format",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minItems",
    "maxItems",
    "uniqueItems",
)
_MAX_DEPTH = 10
"""Levels that api.openai.com accepts, including the object around all parts."""


class NotStrict(Exception):
    """Raised for a model that the dialect cannot describe; the text names field and reason."""


def strict_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a part, which stands one level deep; raise `NotStrict`."""
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise NotStrict(f"has no JSON schema: {error.message}") from error
    return _Converter(schema.get("$defs", {})).convert(schema, _Position(depth=1))


def closed_object(properties: Mapping[str, Schema]) -> Schema:
    """Return the schema of an object with exactly these properties, each nullable."""
    return {
        "type": "object",
        "properties": {name: _nullable(schema) for name, schema in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class _Position:
    """Where a schema stands: its field, the references that led to it, the levels above it."""

    field: str = ""
    references: frozenset[str] = frozenset()
    depth: int = 0

    def refusal(self, why: str) -> NotStrict:
        return NotStrict(f"{self.field} {why}" if self.field else why)

    def deeper(self, step: str) -> "_Position":
        if self.depth == _MAX_DEPTH:
            raise self.refusal(f"is nested more than {_MAX_DEPTH} levels deep")
        return replace(self, field=self.field + step, depth=self.depth + 1)


@dataclass(frozen=True, slots=True)
class _Converter:
    definitions: Mapping[str, Schema]

    def convert(self, schema: Schema, position: _Position) -> Schema:
        schema, position = self._resolved(schema, position)
        kind = schema.get("type")
        if "anyOf" in schema or "oneOf" in schema:
            converted = self._union(schema.get("anyOf") or schema["oneOf"], position)
        elif "enum" in schema or "const" in schema:
            converted = _choice(schema, position)
        elif kind == "object":
            converted = self._object(schema, position)
        elif kind == "array":
            converted = self._array(schema, position)
        elif kind in _SCALARS:
            converted = {"type": kind}
        else:
            raise position.refusal("takes anything")
        description = _description(schema)
        return {**converted, "description": description} if description else converted

    def _resolved(self, schema: Schema, position: _Position) -> tuple[Schema, _Position]:
        """Replace references by their definitions; keywords beside a reference win."""
        while reference := schema.get("$ref"):
            if reference in position.references:
                raise position.refusal("contains itself")
            position = replace(position, references=position.references | {reference})
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = self.definitions[reference.removeprefix("#/$defs/")] | beside
        return schema, position

    def _union(self, branches: list[Schema], position: _Position) -> Schema:
        converted = [self.convert(branch, position) for branch in branches]
        if sum(branch.get("type") == "object" for branch in converted) > 1:
            # api.openai.com refuses them if their first keys are the same.
            raise position.refusal("is one of several objects")
        return {"anyOf": converted}

    def _object(self, schema: Schema, position: _Position) -> Schema:
        if "properties" not in schema or schema.get("additionalProperties"):
            raise position.refusal("takes fields of any name")
        dot = "." if position.field else ""
        return closed_object(
            {
                name: self.convert(inner, position.deeper(f"{dot}{name}"))
                for name, inner in schema["properties"].items()
            }
        )

    def _array(self, schema: Schema, position: _Position) -> Schema:
        if "prefixItems" in schema:
            raise position.refusal("is a tuple")
        return {"type": "array", "items": self.convert(schema["items"], position.deeper("[]"))}


def _choice(schema: Schema, position: _Position) -> Schema:
    if schema.get("type") not in _SCALARS:
        raise position.refusal("mixes kinds of values")
    return {"type": schema["type"], "enum": schema.get("enum") or [schema["const"]]}


def _description(schema: Schema) -> str:
    """Return the description of a value with its limits, which strict servers do not accept."""
    limits = ", ".join(f"{name}: {schema[name]}" for name in _LIMITS if name in schema)
    described = schema.get("description", "")
    return f"{described} ({limits})".strip() if limits else described


def _nullable(schema: Schema) -> Schema:
    branches = schema.get("anyOf", [schema])
    if any(branch["type"] == "null" for branch in branches if "type" in branch):
        return schema
    beside = schema if "anyOf" in schema else {}
    return {**beside, "anyOf": [*branches, _NULL]}
