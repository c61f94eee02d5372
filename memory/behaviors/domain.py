"""The field `domain` of the running state: an operator's own fields. Pure.

They are set step by step, cleared, or refused with a reason. An update is kept whole or not at all.
"""

from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

import orjson
from pydantic import (
    BaseModel,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
)

MAX_DOMAIN_BYTES = 1_200
"""Bytes of all fields as JSON."""


class DomainRefused(Exception):
    """Raised for an update that cannot be kept; nothing of it is.

    The text tells a model what to do better. It names fields, sizes and kinds of errors and quotes
    no value, so logs may show it.
    """


class PartialDomain(BaseModel):
    """Fields of an operator's model that are known so far; null fields are not stored."""

    @model_serializer(mode="wrap")
    def _filled(self, write: SerializerFunctionWrapHandler) -> dict[str, Any]:
        return {name: value for name, value in write(self).items() if value is not None}


@cache
def partial_of(domain: type[BaseModel]) -> type[PartialDomain]:
    """Return a model with the fields of `domain`, each of which may be missing or null.

    Validators of the operator's class are not in it; `updated_fields` applies them.
    """
    annotated: Any = Annotated
    fields: dict[str, Any] = {}
    for name, each in domain.model_fields.items():
        described: Any = Field(None, title=each.title, description=each.description)
        limited = annotated[(each.annotation, *each.metadata, Field())]
        fields[name] = (limited | None, described)
    return create_model(domain.__name__, __base__=PartialDomain, __doc__=domain.__doc__, **fields)


def updated_fields(
    domain: type[BaseModel], before: Mapping[str, object], update: Mapping[str, object]
) -> dict[str, object]:
    """Return the known fields after an update, as values for JSON; None in `update` clears a field.

    Required fields may still be missing. As soon as none is, the operator's model validates all of
    them and adds its defaults. Unknown fields are dropped. Raise `DomainRefused`.
    """
    merged = {**before, **update}
    given = {name: merged[name] for name in domain.model_fields if merged.get(name) is not None}
    fields = _validated(domain, given)
    size = len(orjson.dumps(fields))
    if size > MAX_DOMAIN_BYTES:
        longest = max(fields, key=lambda name: len(orjson.dumps(fields[name])))
        raise DomainRefused(
            f"`domain` would take {size} bytes, but at most {MAX_DOMAIN_BYTES} are kept; the "
            f"longest field is {longest} with {len(orjson.dumps(fields[longest]))}"
        )
    return fields


def _validated(domain: type[BaseModel], given: Mapping[str, object]) -> dict[str, object]:
    content = orjson.dumps(given)
    try:
        whole = domain.model_validate_json(content, by_alias=True, by_name=True)
        fields = whole.model_dump(mode="json", by_alias=False)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
        bad = sorted(
            {
                f"{each['loc'][0] if each['loc'] else 'all fields'}: {each['type']}"
                for each in errors
                if each["type"] != "missing" or len(each["loc"]) > 1
            }
        )
        if bad:
            raise DomainRefused(f"`domain` does not fit: {', '.join(bad)}") from None
        fields = partial_of(domain).model_validate_json(content).model_dump(mode="json")
    return {name: value for name, value in fields.items() if value is not None}
