"""The field `domain` of the running state: an operator's own fields. Pure.

They are set step by step, cleared, or refused with a reason. Texts that are too long lose their
ends; apart from that, an update is kept whole or not at all.
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

from memory.text.untrusted_text import cut

MAX_DOMAIN_BYTES = 1_200
"""Bytes of all fields as JSON."""

_MIN_TEXT_BYTES = 200
"""A text of no more bytes is not cut: it may be a key or a name."""


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
    them and adds its defaults. Unknown fields are dropped. If the fields are too large, the longest
    texts lose their ends. Raise `DomainRefused`.
    """
    merged = {**before, **update}
    given = {name: merged[name] for name in domain.model_fields if merged.get(name) is not None}
    fields = _validated(domain, given)
    if _excess(fields) <= 0:
        return fields
    try:
        fitting = _validated(domain, _with_cut_texts(domain, fields))
    except DomainRefused:  # a text that the model does not take with an end cut off
        fitting = fields
    if _excess(fitting) <= 0:
        return fitting
    longest = max(fields, key=lambda name: _size(fields[name]))
    raise DomainRefused(
        f"`domain` would take {_size(fields)} bytes, but at most {MAX_DOMAIN_BYTES} are kept; the "
        f"longest field is {longest} with {_size(fields[longest])}"
    )


def _with_cut_texts(domain: type[BaseModel], fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields with the longest texts cut, as far as necessary and possible."""
    fitting = dict(fields)
    texts = {
        name: text
        for name, text in fields.items()
        if isinstance(text, str) and domain.model_fields[name].annotation in (str, str | None)
    }
    for name, text in sorted(texts.items(), key=lambda item: -len(item[1].encode())):
        if (excess := _excess(fitting)) > 0 and len(text.encode()) > _MIN_TEXT_BYTES:
            fitting[name] = cut(text, max(_MIN_TEXT_BYTES, len(text.encode()) - excess))
    return fitting


def _size(value: object) -> int:
    return len(orjson.dumps(value))


def _excess(fields: Mapping[str, object]) -> int:
    return _size(fields) - MAX_DOMAIN_BYTES


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
