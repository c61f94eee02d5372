"""A shape that says so fits strict mode, and a bad part does not affect the others."""

from collections.abc import Callable
from contextlib import suppress
from datetime import date
from enum import Enum
from types import GenericAlias
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, create_model

from memory.text.internal_model import AnswerShape, PartInvalid
from tests.servers.model_api.bodies import schema_complaint


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


class Issue(BaseModel):
    """An issue in a tracker."""

    key: str = Field(max_length=20, description="Its short name")
    due: date | None = None
    mood: Mood = Mood.GOOD


class State(BaseModel):
    """What is known of the conversation."""

    first_name: str = "unknown"
    topics: list[str] = []
    issue: Issue | None = None
    main: Issue = Field(default=Issue(key="none"), description="The one that counts")
    size: int | str = 0


class Fact(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    source: int


class Facts(BaseModel):
    facts: list[Fact]
    nickname: str | None


SHAPE = AnswerShape.of({"state": State, "facts": Facts})


class Free(BaseModel):
    amounts: dict[str, int] = {}


class Tree(BaseModel):
    name: str
    branches: "list[Tree]" = []


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")

    name: str


def with_field(kind: Any) -> type[BaseModel]:
    return create_model("Part", field=(kind, ...))


def nested(levels: int) -> type[BaseModel]:
    return with_field(nested(levels - 1) if levels else str)


# The schema


def or_null(**schema: object) -> dict[str, object]:
    return {"anyOf": [schema, {"type": "null"}]}


def object_with(properties: dict[str, object], **more: object) -> dict[str, object]:
    """Return the schema of an object that has exactly these properties."""
    closed = {"required": [*properties], "additionalProperties": False}
    return {"type": "object", "properties": properties, **closed, **more}


def test_a_schema_uses_only_keywords_of_strict_mode() -> None:
    properties: dict[str, object] = {
        "key": or_null(type="string", description="Its short name (maxLength: 20)"),
        "due": or_null(type="string", description="(format: date)"),
        "mood": or_null(type="string", enum=["good", "bad"]),
    }
    issue = object_with(properties, description="An issue in a tracker.")
    assert AnswerShape.of({"issue": Issue}).schema == object_with({"issue": or_null(**issue)})


@pytest.mark.parametrize("shape", [SHAPE, AnswerShape.of({}), AnswerShape.of({"deep": nested(8)})])
def test_strict_mode_accepts_the_schema_of_a_strict_shape(shape: AnswerShape) -> None:
    assert not shape.unconvertible
    assert schema_complaint(shape.schema, strict=True) == ""


@pytest.mark.parametrize(
    ("part", "why"),
    [
        (Free, "amounts takes fields of any name"),
        (Open, "takes fields of any name"),
        (Tree, "branches[] contains itself"),
        (with_field(Any), "field takes anything"),
        (with_field(list[Any]), "field[] takes anything"),
        (with_field(tuple[int, str]), "field is a tuple"),
        (with_field(Literal["a", 1]), "field mixes kinds of values"),
        (with_field(list[Issue | Fact]), "field[] is one of several objects"),
        (
            with_field(Callable[[], None]),
            ("has no JSON schema: Cannot generate a JsonSchema for core_schema.CallableSchema"),
        ),
        (nested(9), f"{'.'.join(['field'] * 9)} is nested more than 10 levels deep"),
    ],
)
def test_a_part_beyond_strict_mode_is_named_with_a_reason(part: type[BaseModel], why: str) -> None:
    shape = AnswerShape.of({"state": State, "odd": part})
    assert shape.unconvertible == {"odd": why}
    assert shape.unconvertible
    assert shape.schema["required"] == ["state", "odd"]


FIELD_TYPES = st.recursive(
    st.sampled_from(
        [
            str,
            int,
            float,
            bool,
            date,
            Mood,
            Issue,
            Any,
            dict[str, int],
            Tree,
            Annotated[int, Field(ge=0)],
        ]
    ),
    lambda inner: st.one_of(
        inner.map(lambda kind: GenericAlias(list, (kind,))),
        inner.map(lambda kind: kind | None),
        st.tuples(inner, inner).map(lambda kinds: kinds[0] | kinds[1]),
    ),
    max_leaves=4,
)


@given(st.dictionaries(st.sampled_from("abcd"), FIELD_TYPES))
def test_a_shape_is_strict_exactly_if_strict_mode_accepts_it(fields: dict[str, Any]) -> None:
    annotated: dict[str, Any] = {name: (kind, ...) for name, kind in fields.items()}
    part = create_model("Part", **annotated)
    shape = AnswerShape.of({"part": part})
    assert bool(shape.unconvertible) != (schema_complaint(shape.schema, strict=True) == "")


# The parts of an answer


WHOLE: dict[str, object] = {"facts": [], "nickname": None}


@pytest.mark.parametrize(
    ("answer", "met"),
    [
        ({"state": None, "facts": WHOLE}, True),
        ({"state": None, "facts": None, "more": 1}, True),
        ({"facts": WHOLE}, False),
        ({"state": None, "facts": {"facts": []}}, False),
        ({"state": None, "facts": []}, False),
    ],
)
def test_an_answer_meets_the_shape_only_if_no_part_and_no_field_is_missing(
    answer: dict[str, object], *, met: bool
) -> None:
    assert SHAPE.is_met_by(answer) is met


# Validation


def test_a_part_becomes_its_model() -> None:
    raw = {"facts": [{"text": "Likes tea", "source": "7"}], "nickname": None}
    expected = Facts(facts=[Fact(text="Likes tea", source=7)], nickname=None)
    assert SHAPE.validate("facts", raw) == expected


def test_a_null_that_a_field_does_not_allow_becomes_its_default() -> None:
    raw: dict[str, object] = {
        "first_name": None,
        "topics": [None, "tea", "null"],
        "issue": {"key": "A-1", "due": "2026-01-02", "mood": None},
        "main": "null",
        "size": None,
    }
    issue = Issue(key="A-1", due=date(2026, 1, 2))
    assert SHAPE.validate("state", raw) == State(topics=["tea"], issue=issue)
    assert raw["topics"] == [None, "tea", "null"]


def test_an_unknown_field_is_ignored() -> None:
    raw = {"facts": [{"text": "x", "source": 1, "why": "said so"}], "nickname": None}
    assert SHAPE.validate("facts", raw) == Facts(facts=[Fact(text="x", source=1)], nickname=None)


def test_half_an_emoji_becomes_a_question_mark() -> None:
    assert SHAPE.validate("state", {"first_name": "Ann \ud83d"}) == State(first_name="Ann ?")


DEEP: list[object] = []
for _ in range(10_000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    "raw",
    [
        None,
        "null",
        "secret words",
        ["secret words"],
        {"facts": [{"text": "secret words", "source": "secret words"}], "nickname": None},
        {"facts": [{"source": 1}], "nickname": "secret words"},
        {"facts": None, "nickname": "secret words"},
        {"facts": [{"text": None, "source": 1}], "nickname": None},
        DEEP,
    ],
    ids=lambda raw: type(raw).__name__,
)
def test_a_bad_part_raises_one_error_that_quotes_nothing(raw: object) -> None:
    with pytest.raises(PartInvalid, match=r"^facts: ") as caught:
        SHAPE.validate("facts", raw)
    assert "secret" not in str(caught.value)
    assert caught.value.__suppress_context__


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["facts", "text", "source", "nickname", "first_name", "issue", "main"]),
            inner,
        )
    ),
)


@given(st.sampled_from(["state", "facts"]), JSON)
def test_any_json_is_a_valid_part_or_raises_part_invalid(name: str, raw: object) -> None:
    with suppress(PartInvalid):
        assert isinstance(SHAPE.validate(name, raw), SHAPE.parts[name])
