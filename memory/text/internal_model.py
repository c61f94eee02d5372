"""The border to the model of internal calls, and the shape of its structured answers.

People never see its answers. A shape is named parts, each a pydantic model. It is made once, so the
schema is the same in every request. `bot.model` asks servers for it.
The SDK's helpers and `instructor` validate an answer as a whole. Here each part is validated alone,
and nulls or unknown fields of weaker servers are repaired, so that one bad part spoils no other.

Servers accept only a part of JSON Schema. Ours is the part that all of them accept: properties are
required and nullable, objects are closed, references are written out, and few keywords are used.
Limits of a field go into its description. A model that does not fit is refused with a reason.
`openai.lib._pydantic.to_strict_json_schema` does less: it is private, keeps references and limits
that some servers refuse, leaves optional fields without null, and refuses nothing, so that
api.openai.com would refuse each call.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import ErrorDetails

Schema = dict[str, Any]

_NULL: Schema = {"type": "null"}
_SCALARS = frozenset({"string", "number", "integer", "boolean", "null"})
_LIMITS = (
    *("format", "pattern", "minLength", "maxLength", "minimum", "maximum", "multipleOf"),
    *("exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems", "uniqueItems"),
)
_MAX_DEPTH = 10  # levels that api.openai.com accepts, including the object around all parts


class NotStrict(Exception):
    """Raised for a model that the dialect cannot describe; the text names field and reason."""


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
            branches = schema.get("anyOf") or schema["oneOf"]
            converted: Schema = {"anyOf": [self.convert(each, position) for each in branches]}
            if sum(each.get("type") == "object" for each in converted["anyOf"]) > 1:
                # api.openai.com refuses them if their first keys are the same.
                raise position.refusal("is one of several objects")
        elif "enum" in schema or "const" in schema:
            if kind not in _SCALARS:
                raise position.refusal("mixes kinds of values")
            converted = {"type": kind, "enum": schema.get("enum") or [schema["const"]]}
        elif kind == "object":
            converted = self._object(schema, position)
        elif kind == "array":
            if "prefixItems" in schema:
                raise position.refusal("is a tuple")
            items = self.convert(schema["items"], position.deeper("[]"))
            converted = {"type": "array", "items": items}
        elif kind in _SCALARS:
            converted = {"type": kind}
        else:
            raise position.refusal("takes anything")
        description = schema.get("description", "")
        limits = ", ".join(f"{name}: {schema[name]}" for name in _LIMITS if name in schema)
        if limits:  # strict servers do not accept them as keywords
            description = f"{description} ({limits})".strip()
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


def _nullable(schema: Schema) -> Schema:
    branches = schema.get("anyOf", [schema])
    if any(branch["type"] == "null" for branch in branches if "type" in branch):
        return schema
    beside = schema if "anyOf" in schema else {}
    return {**beside, "anyOf": [*branches, _NULL]}


_NULL_WORD = "null"  # some models write this word instead of null


class PartInvalid(Exception):
    """Raised for a part that does not fit its model; the error text quotes nothing of the part."""


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """One JSON object with a nullable property per part.

    `schema`: its JSON schema, which may be sent in strict mode unless `unconvertible` names parts
    that the dialect cannot describe, with the reason. Such a schema is only shown in a prompt.
    """

    parts: Mapping[str, type[BaseModel]]
    schema: Mapping[str, Any]
    unconvertible: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, parts: Mapping[str, type[BaseModel]]) -> "AnswerShape":
        """Return the shape of these parts, in their order."""
        schemas: dict[str, Schema] = {}
        unconvertible: dict[str, str] = {}
        for name, model in parts.items():
            schemas[name] = {"type": "object"}
            try:
                schemas[name] = schema = model.model_json_schema()
                converter = _Converter(schema.get("$defs", {}))
                schemas[name] = converter.convert(schema, _Position(depth=1))
            except PydanticInvalidForJsonSchema as error:
                unconvertible[name] = f"has no JSON schema: {error.message}"
            except NotStrict as error:
                unconvertible[name] = str(error)
        return cls(dict(parts), closed_object(schemas), unconvertible)

    def is_met_by(self, answer: Mapping[str, object]) -> bool:
        """Return whether no part and no field is missing, as if the server enforced the schema."""
        if not answer.keys() >= self.parts.keys():
            return False
        for name in self.parts:
            part, schema = answer[name], self.schema["properties"][name]["anyOf"][0]
            has_all = isinstance(part, dict) and part.keys() >= schema.get("properties", {}).keys()
            if part is not None and not has_all:
                return False
        return True

    def validate(self, name: str, raw: object) -> BaseModel:
        """Return a part, without unknown fields and unwanted nulls; raise `PartInvalid`."""
        model = self.parts[name]
        try:
            value = _with_nulls(raw)
            try:
                return model.model_validate_json(_as_json(value))
            except ValidationError as error:
                _leave_out(value, error.errors(include_url=False))
                return model.model_validate_json(_as_json(value))
        except ValidationError as error:
            kinds = {each["type"] for each in error.errors(include_url=False)}
            raise PartInvalid(f"{name}: {', '.join(sorted(kinds))}") from None
        except RecursionError:
            raise PartInvalid(f"{name}: nested too deep") from None


def _as_json(value: object) -> bytes:
    """Return JSON; half an emoji, which no parser accepts, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _with_nulls(raw: object) -> Any:
    """Return a copy with None in place of the word."""
    match raw:
        case dict():
            return {key: _with_nulls(value) for key, value in raw.items()}
        case list():
            return [_with_nulls(value) for value in raw]
        case _:
            return None if raw == _NULL_WORD else raw


def _leave_out(value: object, errors: Sequence[ErrorDetails]) -> None:
    """Remove from `value` the nulls and the unknown fields that these errors name."""
    paths: set[tuple[Any, ...]] = set()
    for error in errors:
        if error["input"] is None or error["type"] == "extra_forbidden":
            inner: Any = value
            path: tuple[Any, ...] = ()
            for step in error["loc"]:
                is_key = isinstance(inner, dict) and step in inner
                is_place = isinstance(inner, list) and isinstance(step, int) and step < len(inner)
                if is_key or is_place:  # other steps name branches of a union
                    inner, path = inner[step], (*path, step)
            paths.add(path)
    for path in sorted(paths - {()}, reverse=True):  # from the end, so that indices stay valid
        inner = value
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]


class ModelTrouble(Exception):
    """Base of the errors that are raised if a model gives no usable answer now.

    `rests_s`: the model fails for everybody and is not asked for this many seconds; 0 if only this
    call failed.
    """

    def __init__(self, reason: str = "", *, rests_s: float = 0.0) -> None:
        super().__init__(reason)
        self.rests_s = rests_s


class InternalModelUnavailable(ModelTrouble):
    """Raised if the internal model fails. Nothing is changed, and learning tries again."""


class InputRefused(InternalModelUnavailable):
    """Raised if the model refuses its input, or if the input is too long for it."""


class InternalModel(Protocol):
    """Answers internal calls."""

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        """Return the raw parts of a structured answer by name, None for a missing part.

        Raise `InternalModelUnavailable`, or `InputRefused` if a shorter input might pass.
        """

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return plain text; raise `InternalModelUnavailable`."""
