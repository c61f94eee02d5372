"""Pieces of tool calls are joined, whatever a server leaves out."""

from collections.abc import Mapping
from typing import Any

import pytest

from bot.model.call import ModelReply, Usage
from bot.model.dialects import ChunkAccumulator
from memory.behaviors.steps import ToolCall
from tests.work import calls

Piece = Mapping[str, object]


def joined(*pieces: Piece) -> tuple[ToolCall, ...]:
    """Return the calls that these pieces add up to."""
    return accumulated(*({"delta": {"tool_calls": [piece]}} for piece in pieces)).tool_calls


def accumulated(*choices: Piece) -> ModelReply:
    answer = ChunkAccumulator()
    for choice in choices:
        answer.add({"choices": [choice]})
    return answer.reply()


def piece(arguments: str, name: str = "", **place: object) -> Piece:
    return {**place, "function": {"name": name or None, "arguments": arguments}}


TWO_CALLS = (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}'))
FIRST: dict[str, Any] = {"index": 0, "id": "a"}
PIECES: dict[str, tuple[tuple[Piece, ...], tuple[ToolCall, ...]]] = {
    "pieces of two calls alternate": (
        (
            *(piece("", "f", **FIRST), piece("", "g", index=1, id="b")),
            *(piece('{"x":', index=0), piece('{"y":', index=1)),
            *(piece("1}", index=0), piece("2}", index=1)),
        ),
        TWO_CALLS,
    ),
    "without an index they belong to the newest call": (
        (piece('{"x":1}', "f", id="a"), piece("", "g", id="b"), piece('{"y":'), piece("2}")),
        TWO_CALLS,
    ),
    "id and name are repeated": (
        (piece("{", "f", **FIRST), piece("}", "f", **FIRST)),
        (ToolCall("a", "f", "{}"),),
    ),
    "each piece has an id of its own": (
        (piece("", "f", **FIRST), piece('{"x":', index=0, id="b"), piece("1}", index=0, id="c")),
        TWO_CALLS[:1],
    ),
    "there are no arguments": (({**FIRST, "function": {"name": "f"}},), (ToolCall("a", "f", ""),)),
    "half an emoji, which could not be stored, is replaced": (
        (piece("{\ud83d", "f\ud83d", id="a\ud83d"),),
        (ToolCall("a\ufffd", "f\ufffd", "{\ufffd"),),
    ),
    "a call that never gets a name is dropped": ((piece("{}", **FIRST),), ()),
}


@pytest.mark.parametrize("how", PIECES)
def test_pieces_are_joined_to_calls(how: str) -> None:
    pieces, calls = PIECES[how]
    assert joined(*pieces) == calls


@pytest.mark.parametrize("place", [{"index": 0}, {}, {"index": 0, "id": ""}], ids=str)
def test_without_ids_a_new_name_means_a_new_call(place: Piece) -> None:
    calls = joined(piece('{"x":1}', "f", **place), piece('{"x":2}', "f", **place))
    assert [(call.name, call.arguments) for call in calls] == [("f", '{"x":1}'), ("f", '{"x":2}')]


def test_calls_without_an_id_get_one_each() -> None:
    calls = joined(piece("{}", "f", index=0), piece("{}", "g", index=1))
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize(("read", "more"), [({"index": 0}, {}), ({"index": 1}, {"index": 1})])
def test_of_several_answers_only_the_first_is_read(read: Piece, more: Piece) -> None:
    other: Piece = {"index": 2, "delta": {"content": "Hi"}, "finish_reason": "stop"}
    first: Piece = {"delta": {"content": "Hel"}}
    last: Piece = {"delta": {"content": "lo"}}
    answer = accumulated({**read, **first}, other, {**more, **last})
    assert (answer.text, answer.finish_reason) == ("Hello", "")


@pytest.mark.parametrize("last", [{}, {"delta": {}}], ids=["no delta", "an empty one"])
def test_an_answer_is_complete_only_once_a_finish_reason_came(last: Piece) -> None:
    answer = ChunkAccumulator()
    assert (answer.is_empty, answer.finish_reason) == (True, "")
    answer.add({})
    answer.add({"choices": [{"delta": {"content": "All."}, "finish_reason": None}]})
    assert (answer.is_empty, answer.finish_reason) == (False, "")
    answer.add({"choices": [{**last, "finish_reason": "stop"}]})
    answer.add({"choices": [], "usage": None})
    assert (answer.reply().text, answer.finish_reason) == ("All.", "stop")


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, Usage(7, 2, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(7, 0, 5)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {}}, Usage(7, 0, 0)),
        ({"prompt_tokens": 10**10, "completion_tokens": -1}, Usage()),
        (
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 6}},
            Usage(0, 9, 0, 6),
        ),
        ({}, Usage()),
    ],
    ids=str,
)
def test_usage_is_read_as_far_as_the_server_reports_it(told: Piece, expected: Usage) -> None:
    answer = ChunkAccumulator()
    answer.add({"choices": [], "usage": told})
    assert answer.reply().usage == expected


def test_only_the_text_of_content_parts_is_read() -> None:
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "y"}, {"type": "text"}]
    reply = accumulated({"delta": {"content": parts}}, {"delta": {"content": "es"}})
    assert reply.text == "yes"


@pytest.mark.parametrize("name", ["choices", "tool_calls", "content"])
def test_a_long_list_in_one_event_is_read_only_at_its_beginning(name: str) -> None:
    """Read to its end, an event of 4 MB holds the loop for five seconds."""
    many: list[object] = [{}] * 100_000
    choices = many if name == "choices" else [{"delta": {name: many}}]
    assert calls(lambda: ChunkAccumulator().add({"choices": choices})) < 50_000
