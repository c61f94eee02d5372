"""Pieces of tool calls are joined, whatever a server leaves out."""

from collections.abc import Mapping

import pytest

from bot.model.call import ModelReply, Usage
from bot.model.completions import ChunkAccumulator
from memory.behaviors.steps import ToolCall

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


def test_arguments_are_joined_by_index_also_if_pieces_of_two_calls_alternate() -> None:
    calls = joined(
        piece("", "f", index=0, id="a"),
        piece("", "g", index=1, id="b"),
        piece('{"x":', index=0),
        piece('{"y":', index=1),
        piece("1}", index=0),
        piece("2}", index=1),
    )
    assert calls == (ToolCall("a", "f", '{"x":1}'), ToolCall("b", "g", '{"y":2}'))


def test_arguments_without_an_index_belong_to_the_newest_call() -> None:
    calls = joined(piece("{}", "f", id="a"), piece("", "g", id="b"), piece('{"y":'), piece("2}"))
    assert calls == (ToolCall("a", "f", "{}"), ToolCall("b", "g", '{"y":2}'))


@pytest.mark.parametrize("place", [{"index": 0}, {}, {"index": 0, "id": ""}], ids=str)
def test_without_ids_a_new_name_means_a_new_call(place: Piece) -> None:
    calls = joined(piece('{"x":1}', "f", **place), piece('{"x":2}', "f", **place))
    assert [(call.name, call.arguments) for call in calls] == [("f", '{"x":1}'), ("f", '{"x":2}')]


def test_a_server_may_repeat_id_and_name_with_each_piece() -> None:
    place = {"index": 0, "id": "a"}
    assert joined(piece("{", "f", **place), piece("}", "f", **place)) == (ToolCall("a", "f", "{}"),)


def test_calls_without_an_id_get_one_each() -> None:
    calls = joined(piece("{}", "f", index=0), piece("{}", "g", index=1))
    assert all(call.id for call in calls)
    assert len({call.id for call in calls}) == 2


def test_a_call_may_have_no_arguments_at_all() -> None:
    assert joined({"index": 0, "id": "a", "function": {"name": "f"}}) == (ToolCall("a", "f", ""),)


def test_a_choice_may_lack_its_delta_or_be_missing() -> None:
    answer = ChunkAccumulator()
    answer.add({})
    answer.add({"choices": [{"delta": {"content": "All."}}]})
    answer.add({"choices": [{"finish_reason": "stop"}]})
    assert (answer.reply().text, answer.finish_reason) == ("All.", "stop")


def test_an_answer_is_complete_only_once_a_finish_reason_came() -> None:
    answer = ChunkAccumulator()
    assert (answer.is_empty, answer.finish_reason) == (True, "")
    answer.add({"choices": [{"delta": {"content": "All."}, "finish_reason": None}]})
    assert (answer.is_empty, answer.finish_reason) == (False, "")
    answer.add({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    answer.add({"choices": [], "usage": None})
    assert answer.finish_reason


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ({"prompt_tokens": 7, "completion_tokens": 2}, Usage(7, 2, 0)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {"cached_tokens": 5}}, Usage(7, 0, 5)),
        ({"prompt_tokens": 7, "prompt_tokens_details": {}}, Usage(7, 0, 0)),
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


def test_a_server_may_make_up_an_id_for_each_piece() -> None:
    assert joined(
        piece("", "f", index=0, id="a"),
        piece('{"x":', index=0, id="b"),
        piece("1}", index=0, id="c"),
    ) == (ToolCall("a", "f", '{"x":1}'),)


def test_a_call_that_never_gets_a_name_is_dropped() -> None:
    assert joined(piece("{}", index=0, id="a")) == ()


def test_content_that_is_not_text_is_skipped() -> None:
    reply = accumulated({"delta": {"content": [{"type": "text"}]}}, {"delta": {"content": "yes"}})
    assert reply.text == "yes"
