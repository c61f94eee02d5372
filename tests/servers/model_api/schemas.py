"""What api.openai.com demands of a JSON schema, for tools and for structured output."""

from collections.abc import Iterator, Mapping
from typing import Any

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})

_NOT_STRICT = frozenset(
    {
        "allOf",
        "contains",
        "default",
        "dependentRequired",
        "dependentSchemas",
        "else",
        "if",
        "not",
        "oneOf",
        "patternProperties",
        "prefixItems",
        "propertyNames",
        "then",
        "unevaluatedProperties",
        "uniqueItems",
    }
)
"""Keywords that strict mode does not know."""

Path = tuple[str, ...]


def schema_complaint(schema: object, *, strict: bool) -> str:
    """Return what is wrong with a schema whose root must be an object; empty when nothing is."""
    kind = schema.get("type") if isinstance(schema, Mapping) else None
    if kind != "object":
        return f"schema must be a JSON Schema of 'type: \"object\"', got 'type: \"{kind}\"'."
    return next(_complaints(schema, (), strict=strict), "")


def _complaints(schema: object, path: Path, *, strict: bool) -> Iterator[str]:
    """Walk a schema and what it contains, outermost first."""
    where = f"In context={path}, "
    if not isinstance(schema, Mapping):
        yield f"{where}{schema!r} is not of type 'object', 'boolean'."
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if not isinstance(kinds, list) or not _TYPES.issuperset(kinds):
        yield f"{where}{schema['type']!r} is not valid under any of the given schemas."
        return
    if "array" in kinds and "items" not in schema:
        yield f"{where}array schema missing items."
    properties = schema.get("properties", {})
    if not isinstance(properties, Mapping):
        yield f"{where}'properties' must be an object."
        return
    if strict:
        yield from _strict_complaints(schema, where)
    for name, inner in properties.items():
        yield from _complaints(inner, (*path, "properties", name), strict=strict)
    if "items" in schema:
        yield from _complaints(schema["items"], (*path, "items"), strict=strict)
    for at, inner in enumerate(schema.get("anyOf", ())):
        yield from _complaints(inner, (*path, "anyOf", str(at)), strict=strict)
    for name, inner in schema.get("$defs", {}).items():
        yield from _complaints(inner, ("$defs", name), strict=strict)


def _strict_complaints(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    for name in sorted(_NOT_STRICT & schema.keys()):
        yield f"{where}'{name}' is not permitted."
    if schema.keys().isdisjoint({"type", "anyOf", "$ref"}):
        yield f"{where}schema must have a 'type' key."
    if "object" in (schema.get("type") or ""):
        yield from _open_complaints(schema, where)


def _open_complaints(schema: Mapping[str, Any], where: str) -> Iterator[str]:
    if schema.get("additionalProperties") is not False:
        yield f"{where}'additionalProperties' is required to be supplied and to be false."
    required = schema.get("required")
    if not isinstance(required, list) or set(required) != schema.get("properties", {}).keys():
        yield (
            f"{where}'required' is required to be supplied and to be an array including every key "
            "in properties."
        )
