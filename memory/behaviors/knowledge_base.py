"""`KnowledgeBase`: what an assistant keeps in mind of one conversation. Pure values.

It is read from JSON, updated and kept within bounds here; `running_state` stores it. An operator
may add a part of their own, the field `domain`. Its fields are set step by step, cleared, or
refused with a reason. Texts that are too long lose their ends; apart from that, an update is kept
whole or not at all.
"""

import json
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, ClassVar

import orjson
import structlog
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    create_model,
    model_serializer,
)

from memory.text.internal_model import AnswerShape, PartInvalid
from memory.text.untrusted_text import cut, one_line

MAX_DOMAIN_BYTES = 1_200  # bytes of all fields as JSON

_MIN_TEXT_BYTES = 200  # a text of no more bytes is not cut: it may be a key or a name


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
    if _size(fields) <= MAX_DOMAIN_BYTES:
        return fields
    fitting = dict(fields)
    texts = {
        name: text
        for name, text in fields.items()
        if isinstance(text, str) and domain.model_fields[name].annotation in (str, str | None)
    }
    for name, text in sorted(texts.items(), key=lambda item: -len(item[1].encode())):
        excess = _size(fitting) - MAX_DOMAIN_BYTES
        if excess > 0 and len(text.encode()) > _MIN_TEXT_BYTES:
            fitting[name] = cut(text, max(_MIN_TEXT_BYTES, len(text.encode()) - excess))
    with suppress(DomainRefused):  # the model may not take a text with an end cut off
        fitting = _validated(domain, fitting)
        if _size(fitting) <= MAX_DOMAIN_BYTES:
            return fitting
    longest = max(fields, key=lambda name: _size(fields[name]))
    raise DomainRefused(
        f"`domain` would take {_size(fields)} bytes, but at most {MAX_DOMAIN_BYTES} are kept; the "
        f"longest field is {longest} with {_size(fields[longest])}"
    )


def _size(value: object) -> int:
    return len(orjson.dumps(value))


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


log = structlog.get_logger(__name__)

UNKNOWN = "unknown"
_UNKNOWN_WORDS = frozenset({"", UNKNOWN, "none", "null", "n/a", "not known", "not given"})

MAX_BYTES = 4_096
"""Bytes of a stored state; the bounds of names, summary and domain fit whatever JSON escapes."""

_NAME_BYTES = 96
_SUMMARY_BYTES = 1_100
_ENTRY_BYTES = 200
_MAX_ENTRIES = 10
NAMES = ("first_name", "last_name")
_LISTS = ("key_entities", "open_problems", "current_goals")


class KnowledgeBase(BaseModel):
    """What an assistant keeps in mind of one conversation."""

    model_config = ConfigDict(extra="ignore", frozen=True)
    OPERATORS: ClassVar[type[BaseModel] | None] = None
    """The operator's model of the field `domain`; None without such a field."""

    first_name: str = Field(
        UNKNOWN, description='First name of the person talked with; "unknown" if not known'
    )
    last_name: str = Field(
        UNKNOWN, description='Last name of the person talked with; "unknown" if not known'
    )
    discussion_summary: str = Field(
        UNKNOWN,
        description="What the conversation has been about and where it stands, in at most 100 "
        "words; rewritten as a whole, the older the shorter",
    )
    key_entities: list[str] = Field(
        [], description="People, places, things and topics that matter here; at most ten"
    )
    open_problems: list[str] = Field(
        [], description="What is not solved yet, the most important first; at most ten"
    )
    current_goals: list[str] = Field(
        [], description="What is to be achieved now, the most important first; at most ten"
    )


def knowledge_base_model(domain: type[BaseModel] | None) -> type[KnowledgeBase]:
    """Return the model, with a field `domain` if the operator has a model for it.

    In this field all of the operator's fields may be missing, also the required ones. A `domain`
    whose fields have wrong types reads as None; the other fields are read as usual.
    """
    if domain is None:
        return KnowledgeBase
    partial = partial_of(domain)
    shape = AnswerShape.of({"domain": partial})

    def fitting(raw: object) -> object:
        if raw is None or isinstance(raw, partial):
            return raw
        try:
            return shape.validate("domain", raw)
        except PartInvalid as error:
            log.warning("domain does not fit", reason=str(error))
            return None

    annotated: Any = Annotated[partial | None, BeforeValidator(fitting)]
    described = Field(None, description="What the conversation is about in this bot's own field")
    model = create_model(
        "KnowledgeBase",
        __base__=KnowledgeBase,
        __doc__=KnowledgeBase.__doc__,
        domain=(annotated, described),
    )
    model.OPERATORS = domain
    return model


def read(model: type[KnowledgeBase], state: str) -> KnowledgeBase:
    """Return a stored state; a field that does not fit (of an older version) gets its default."""
    stored = _object(state)
    try:
        return model.model_validate(stored)
    except ValidationError as error:
        bad = {each["loc"][0] for each in error.errors()}
        return model.model_validate({k: v for k, v in stored.items() if k not in bad})


def known(state: KnowledgeBase) -> Mapping[str, object]:
    """Return the known fields, as values for JSON."""
    fields = state.model_dump(mode="json", exclude_none=True)
    return {name: value for name, value in fields.items() if _is_known(value)}


def known_json(state: KnowledgeBase) -> str:
    """Return the known fields as JSON; "" if nothing is known."""
    fields = known(state)
    return json.dumps(fields, ensure_ascii=False) if fields else ""


def updated(old: KnowledgeBase, new: KnowledgeBase) -> KnowledgeBase:
    """Return `new` within bounds; a name or summary that it does not know stays as in `old`.

    Lists become those of `new`, so they may become empty. In `domain`, fields that `new` gives as
    null are cleared, and fields that it leaves out stay. Raise `DomainRefused`.
    """
    names_and_summary = {
        name: after if _is_known(after) else before
        for name in (*NAMES, "discussion_summary")
        for before, after in [(getattr(old, name), getattr(new, name))]
    }
    before, given = (getattr(each, "domain", None) for each in (old, new))
    domain = {"domain": before} if new.OPERATORS else {}
    kept = new.model_copy(update={**names_and_summary, **domain})
    # The serializer leaves out nulls, and here they say what to clear.
    update = dict.fromkeys(given.model_fields_set) if given else {}
    return bounded(_with_domain(kept, update | (given.model_dump(mode="json") if given else {})))


def merged_domain(model: type[KnowledgeBase], state: str, update: str) -> str:
    """Return a stored state with the fields of `domain` that `update` sets, a JSON object.

    A null clears a field. Raise `DomainRefused` if the result does not fit the operator's model or
    is too large.
    """
    if model.OPERATORS is None:
        raise DomainRefused("there is no `domain` here")
    return bounded(_with_domain(read(model, state), _object(update))).model_dump_json()


def bounded(state: KnowledgeBase) -> KnowledgeBase:
    """Return a state of at most `MAX_BYTES` as JSON; the longest lists lose their last entries."""
    lists: dict[str, list[str]] = {}
    for name in _LISTS:
        lines = (cut(one_line(entry), _ENTRY_BYTES) for entry in getattr(state, name))
        lists[name] = list(dict.fromkeys(filter(_is_known, lines)))[:_MAX_ENTRIES]
    names = {name: cut(one_line(getattr(state, name)), _NAME_BYTES) for name in NAMES}
    names = {name: text if _is_known(text) else UNKNOWN for name, text in names.items()}
    summary = cut(one_line(state.discussion_summary), _SUMMARY_BYTES)
    fitting = state.model_copy(update={**names, **lists, "discussion_summary": summary})
    while len(fitting.model_dump_json().encode()) > MAX_BYTES:
        max(lists.values(), key=lambda entries: len("".join(entries).encode())).pop()
    return fitting


def _object(text: str) -> Mapping[str, object]:
    """Return the object of a JSON text; an empty one for any other text."""
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _with_domain(state: KnowledgeBase, update: Mapping[str, object]) -> KnowledgeBase:
    """Return a state with these fields of `domain` set or cleared; raise `DomainRefused`."""
    if not update or state.OPERATORS is None:
        return state
    before = state.model_dump(mode="json").get("domain") or {}
    fields = updated_fields(state.OPERATORS, before, update)
    partial = partial_of(state.OPERATORS)
    after = partial.model_validate_json(orjson.dumps(fields)) if fields else None
    return state.model_copy(update={"domain": after})


def _is_known(value: object) -> bool:
    if isinstance(value, str):
        return value.strip().casefold() not in _UNKNOWN_WORDS
    return bool(value)
