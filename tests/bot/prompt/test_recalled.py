"""Recalled messages are packed into the room there is, so that much of what was found is shown."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast
from zoneinfo import ZoneInfo

import pytest

from bot.prompt.memory_context import RecalledLine, RecallPacker, with_dates
from memory.behaviors.context import AgentContext, CallContext, Person
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.search.message_search import Later, SearchResult
from memory.store.keys import Scope
from tests.bot.prompt.test_assemble import NOW, said
from tests.memory.conftest import TOKENS

CALL = CallContext(Scope.of_chat(7), Person(), NOW, zone=ZoneInfo("Asia/Tokyo"))
CONTEXT = AgentContext(CALL, cast("ChatHistory", None))
FILLER = "We walked along the river and talked about nothing. " * 20


def found(*exchanges: Sequence[Message]) -> list[SearchResult]:
    """Return results whose hit is the first message of each exchange."""
    return [SearchResult(tuple(messages), 1.0, messages[0].seq) for messages in exchanges]


@pytest.fixture
def packer() -> RecallPacker:
    return RecallPacker(TOKENS)


def test_the_first_hits_are_long_and_the_rest_short_around_the_words(packer: RecallPacker) -> None:
    hits = found(*([said(seq, f"{FILLER}Boat {seq} sank. {FILLER}")] for seq in range(1, 12)))
    lines = with_dates(packer.ranked(CONTEXT, hits, "What about the boat?", 1_100))
    sizes = [TOKENS.count(line) for line in lines.values()]
    assert sum(sizes) <= 1_100
    assert min(sizes[:3]) > 150
    assert max(sizes[3:]) < 60
    assert all(f"Boat {seq} sank" in line for seq, line in lines.items())
    assert 1 in packer.ranked(CONTEXT, hits, "boat", 150)  # cut to half of a small room


def test_a_question_for_a_list_shows_more_messages(packer: RecallPacker) -> None:
    hits = found(*([said(seq, f"{FILLER}Boat {seq} sank. {FILLER}")] for seq in range(1, 30)))
    one = with_dates(packer.ranked(CONTEXT, hits, "What about the boat?", 700))
    many = with_dates(packer.ranked(CONTEXT, hits, "Which boats have sunk?", 700))
    assert len(many) > len(one)
    assert list(many) == sorted(many)


def test_a_partner_is_shown_after_all_hits_and_only_if_it_is_needed(packer: RecallPacker) -> None:
    alone = [said(1, "My boat Aurora lies in Bari harbour"), said(2, "A fine boat", "assistant")]
    asks = [said(3, "Where does my boat lie?"), said(4, "In the harbour of Bari", "assistant")]
    hits = found(alone, asks)
    assert sorted(packer.ranked(CONTEXT, hits, "boat", 1_100)) == [1, 3, 4]
    assert sorted(packer.ranked(CONTEXT, hits, "boat", 35)) == [1, 3]


def test_what_says_the_same_is_shown_once(packer: RecallPacker) -> None:
    hits = found([said(1, "The boat is red!")], [said(3, "the boat is red")], [said(5, "It sank")])
    assert sorted(packer.ranked(CONTEXT, hits, "boat", 1_100)) == [1, 5]


def test_a_date_precedes_the_days_first_line(packer: RecallPacker) -> None:
    hits = found(*([said(seq, f"Boat {seq} sank")] for seq in (3, 90_000, 1, 2, 90_001)))
    lines = with_dates(packer.ranked(CONTEXT, hits, "boat", 1_100))
    assert list(lines.values()) == [
        "[12 March 2025, 8 months ago] Anna: Boat 1 sank",
        "- Anna: Boat 2 sank",
        "- Anna: Boat 3 sank",
        "[13 March 2025, 8 months ago] Anna: Boat 90000 sank",
        "- Anna: Boat 90001 sank",
    ]
    limit = sum(TOKENS.count(f"{line}\n") for line in lines.values()) + 2
    assert with_dates(packer.ranked(CONTEXT, hits, "boat", limit)) == lines
    assert len(packer.ranked(CONTEXT, hits, "boat", limit - 3)) == len(lines) - 1


def test_lines_of_one_date_stand_together_even_if_the_clock_went_back() -> None:
    lines = {
        seq: RecalledLine(f"[{day} May]", f"- Anna: {seq}") for seq, day in enumerate((5, 6, 5))
    }
    assert list(with_dates(lines).values()) == ["[5 May] Anna: 0", "- Anna: 2", "[6 May] Anna: 1"]


def test_excluded_messages_are_not_shown(packer: RecallPacker) -> None:
    hits = found([said(1, "The boat?"), said(2, "It sank", "assistant")])
    assert sorted(packer.ranked(CONTEXT, hits, "boat", 1_100, {1})) == [2]


def test_a_line_that_does_not_hold_any_more_says_what_came_after(packer: RecallPacker) -> None:
    [result] = found([said(1, "My boat lies in Bari")])
    later = Later(1_747_000_000.0, "The boat lies\nin <memory> Kiel.", 4)
    hits = [replace(result, later={1: (later,)})]
    lines = with_dates(packer.ranked(CONTEXT, hits, "my boat", 200))
    end = "My boat lies in Bari [until 12 May 2025, then: The boat lies in "
    assert end in lines[1]
    assert "<memory>" not in lines[1]
    assert "\n" not in lines[1]
