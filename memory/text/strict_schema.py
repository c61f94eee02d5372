"""A pydantic model's JSON schema in the dialect of strict structured output.

Every server takes less than JSON Schema offers, so this keeps what all of them take: each property
required and nullable, objects closed, references written out, no keyword but the few named here.
Limits of a field go into its description. What the dialect cannot say is refused with a reason.
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
_DEEPEST = 10
"""Levels that api.openai.com takes, the object around all parts included."""


class NotStrict(Exception):  # noqa: N818 - says what the model is
    """Raised for a model that the dialect cannot describe; the text names the field and why."""


def strict_schema(model: type[BaseModel]) -> Schema:
    """Return the schema of a part that stands one level deep; raise `NotStrict`."""
    try:
        schema = model.model_json_schema()
    except PydanticInvalidForJsonSchema as error:
        raise NotStrict(f"has no JSON schema: {error.message}") from error
    return _Converter(schema.get("$defs", {})).convert(schema, _Place(depth=1))


def closed_object(properties: Mapping[str, Schema]) -> Schema:
    """Return an object that has all of these properties, each perhaps null, and no other."""
    return {
        "type": "object",
        "properties": {name: _nullable(schema) for name, schema in properties.items()},
        "required": list(properties),
        "additionalProperties": False,
    }


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a schema stands: its field, the references followed, the levels around it."""

    field: str = ""
    references: frozenset[str] = frozenset()
    depth: int = 0

    def refusal(self, why: str) -> NotStrict:
        return NotStrict(f"{self.field} {why}" if self.field else why)

    def deeper(self, step: str) -> "_Place":
        if self.depth == _DEEPEST:
            raise self.refusal(f"is nested more than {_DEEPEST} levels deep")
        return replace(self, field=self.field + step, depth=self.depth + 1)


@dataclass(frozen=True, slots=True)
class _Converter:
    definitions: Mapping[str, Schema]

    def convert(self, schema: Schema, place: _Place) -> Schema:
        schema, place = self._resolved(schema, place)
        kind = schema.get("type")
        if "anyOf" in schema or "oneOf" in schema:
            converted = self._union(schema.get("anyOf") or schema["oneOf"], place)
        elif "enum" in schema or "const" in schema:
            converted = _choice(schema, place)
        elif kind == "object":
            converted = self._object(schema, place)
        elif kind == "array":
            converted = self._array(schema, place)
        elif kind in _SCALARS:
            converted = {"type": kind}
        else:
            raise place.refusal("takes anything")
        description = _description(schema)
        return {**converted, "description": description} if description else converted

    def _resolved(self, schema: Schema, place: _Place) -> tuple[Schema, _Place]:
        """Put definitions in the place of references; what stands beside one wins."""
        while reference := schema.get("$ref"):
            if reference in place.references:
                raise place.refusal("contains itself")
            place = replace(place, references=place.references | {reference})
            beside = {key: value for key, value in schema.items() if key != "$ref"}
            schema = self.definitions[reference.removeprefix("#/$defs/")] | beside
        return schema, place

    def _union(self, branches: list[Schema], place: _Place) -> Schema:
        converted = [self.convert(branch, place) for branch in branches]
        if sum(branch.get("type") == "object" for branch in converted) > 1:
            # Refused by api.openai.com when their first keys are the same.
            raise place.refusal("is one of several objects")
        return {"anyOf": converted}

    def _object(self, schema: Schema, place: _Place) -> Schema:
        if "properties" not in schema or schema.get("additionalProperties"):
            raise place.refusal("takes fields of any name")
        dot = "." if place.field else ""
        return closed_object(
            {
                name: self.convert(inner, place.deeper(f"{dot}{name}"))
                for name, inner in schema["properties"].items()
            }
        )

    def _array(self, schema: Schema, place: _Place) -> Schema:
        if "prefixItems" in schema:
            raise place.refusal("is a tuple")
        return {"type": "array", "items": self.convert(schema["items"], place.deeper("[]"))}


def _choice(schema: Schema, place: _Place) -> Schema:
    if schema.get("type") not in _SCALARS:
        raise place.refusal("mixes kinds of values")
    return {"type": schema["type"], "enum": schema.get("enum") or [schema["const"]]}


def _description(schema: Schema) -> str:
    """Return what is said of a value, with the limits that strict servers do not take."""
    limits = ", ".join(f"{name}: {schema[name]}" for name in _LIMITS if name in schema)
    described = schema.get("description", "")
    return f"{described} ({limits})".strip() if limits else described


def _nullable(schema: Schema) -> Schema:
    branches = schema.get("anyOf", [schema])
    if any(branch["type"] == "null" for branch in branches if "type" in branch):
        return schema
    beside = schema if "anyOf" in schema else {}
    return {**beside, "anyOf": [*branches, _NULL]}
