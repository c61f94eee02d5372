"""The shape of a structured answer: named parts, each a pydantic model.

A shape is made once, so the schema is the same in every request. `bot.model` asks servers for it.
The SDK's helpers and `instructor` validate an answer as a whole. Here each part is validated alone,
and nulls or unknown fields of weaker servers are repaired, so that one bad part spoils no other.
"""

import json
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema
from pydantic_core import ErrorDetails

from memory.text.strict_schema import NotStrict, Schema, closed_object, strict_schema

_NULL_WORD = "null"
"""Some models write this word instead of null."""


class PartInvalid(Exception):
    """Raised for a part that does not fit its model; the error text quotes nothing of the part."""


@dataclass(frozen=True, slots=True)
class AnswerShape:
    """One JSON object with a nullable property per part.

    `schema`: its JSON schema, in the strict dialect unless `unconvertible` names parts that the
    dialect cannot describe, with the reason. Such a schema is only shown in a prompt.
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
            try:
                schemas[name] = strict_schema(model)
            except NotStrict as error:
                schemas[name] = _loose_schema(model)
                unconvertible[name] = str(error)
        return cls(dict(parts), closed_object(schemas), unconvertible)

    @property
    def is_strict(self) -> bool:
        """Whether `schema` may be sent in strict mode."""
        return not self.unconvertible

    def raw_parts(self, answer: Mapping[str, object]) -> dict[str, object]:
        """Return the raw value of each part in an answer, None for a missing part."""
        return {name: _null_for_word(answer.get(name)) for name in self.parts}

    def is_met_by(self, answer: Mapping[str, object]) -> bool:
        """Return whether no part and no field is missing, as if the server enforced the schema."""
        return answer.keys() >= self.parts.keys() and all(
            part is None or (isinstance(part, dict) and part.keys() >= self._fields(name))
            for name, part in answer.items()
            if name in self.parts
        )

    def validate(self, name: str, raw: object) -> BaseModel:
        """Return a part as an instance of its model; raise `PartInvalid`.

        A null that the model does not allow counts as missing. Unknown fields are dropped.
        """
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

    def _fields(self, name: str) -> AbstractSet[str]:
        described: dict[str, Schema] = self.schema["properties"][name]["anyOf"][0]
        return described.get("properties", {}).keys()


def _loose_schema(model: type[BaseModel]) -> Schema:
    """Return the plain schema of a model, for a prompt."""
    try:
        return model.model_json_schema()
    except PydanticInvalidForJsonSchema:
        return {"type": "object"}


def _as_json(value: object) -> bytes:
    """Return JSON; half an emoji, which no parser accepts, becomes a question mark."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _null_for_word(raw: object) -> object:
    return None if raw == _NULL_WORD else raw


def _with_nulls(raw: object) -> Any:
    """Return a copy with None in place of the word."""
    match raw:
        case dict():
            return {key: _with_nulls(value) for key, value in raw.items()}
        case list():
            return [_with_nulls(value) for value in raw]
        case _:
            return _null_for_word(raw)


def _leave_out(value: object, errors: Sequence[ErrorDetails]) -> None:
    """Remove from `value` the nulls and the unknown fields that these errors name."""
    paths = {
        _path(value, error["loc"])
        for error in errors
        if error["input"] is None or error["type"] == "extra_forbidden"
    }
    for path in sorted(paths - {()}, reverse=True):  # from the end, so that indices stay valid
        inner: Any = value
        for step in path[:-1]:
            inner = inner[step]
        del inner[path[-1]]


def _path(value: Any, location: tuple[int | str, ...]) -> tuple[Any, ...]:
    """Return the steps of an error location that exist in `value`; others name union branches."""
    path: list[int | str] = []
    for step in location:
        is_key = isinstance(value, dict) and step in value
        if is_key or (isinstance(value, list) and isinstance(step, int) and step < len(value)):
            value = value[step]
            path.append(step)
    return tuple(path)
