"""What api.openai.com demands of a JSON schema, for tools and for structured output."""

from collections.abc import Iterator, Mapping

_TYPES = frozenset({"object", "array", "string", "number", "integer", "boolean", "null"})
_NOT_STRICT = frozenset(
    """
    allOf contains default dependentRequired dependentSchemas else if not oneOf patternProperties
    prefixItems propertyNames then unevaluatedProperties uniqueItems
    """.split()  # noqa: SIM905 - a list of quoted names is harder to read
)
"""Keywords that strict mode does not know."""


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
