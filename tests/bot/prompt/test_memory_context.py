"""What does not fit into the memory section is left out, least relevant first."""

import json

from bot.prompt.memory_context import Offer, RecalledLine, fit_memory_context
from memory.text.tokens import SHORTENED
from tests.memory.conftest import TOKENS

STATE_HEADING = "State of this conversation (JSON):"
STATE = f'{STATE_HEADING}\n{{"first_name":"Anna","goals":["buy a boat"]}}'
FACTS = "Facts, by id and since when they are known:\n" + "\n".join(
    f"#{number} [12 March 2025, 8 months ago] {text}"
    for number, text in enumerate(
        ("Has a dog.", "Is allergic to nuts.", "Owns a red boat.", "Lives in Graz."), 1
    )
)
PAGES = "From documents:\n[Manual] Press the button.\n  Then wait."
WHOLE = f"{STATE}\n{FACTS}\n{PAGES}"


def fitted(context: str, query: str, limit: int) -> str:
    return fit_memory_context(TOKENS, Offer(context, [], {}), query, limit)[0]


def test_what_fits_stays_as_it_is() -> None:
    assert fitted(WHOLE, "boat", 1_000) == WHOLE


def test_the_state_is_kept_and_facts_about_the_question_come_next() -> None:
    limit = TOKENS.count(STATE) + 40
    context = fitted(WHOLE, "What colour is my boat?", limit)
    assert TOKENS.count(context) <= limit
    assert context.startswith(STATE)
    assert "Owns a red boat." in context
    assert set(context.splitlines()) < set(WHOLE.splitlines())
    assert "Manual" not in context


def test_an_indented_line_stays_with_the_state() -> None:
    state = f'{STATE}\n  Back after 5 days, still open: "The tax return"'
    assert fitted(f"{state}\n{FACTS}", "boat", TOKENS.count(state) + 8) == state


def test_a_heading_without_entries_is_left_out() -> None:
    assert fitted(f"{FACTS}\n{PAGES}", "What does the manual say?", 24) == PAGES


def test_only_a_long_text_is_shortened() -> None:
    context = fitted("Earlier sessions:\n" + "word " * 500, "word", 100)
    assert SHORTENED in context
    assert 80 < TOKENS.count(context) <= 100


def test_leading_text_and_pins_come_first_whole_and_may_take_all_room() -> None:
    always = "\n".join(("Facts that always count:", *(f"#{n} Wish {n}." for n in range(20))))
    leading = f"Wishes:\n  Be brief.{' Be kind.' * 99}"
    line = RecalledLine("[1 May 2025]", f"- Anna: {'boat ' * 99}")
    for first in (leading, always):
        long = json.dumps({"discussion_summary": "boat " * 900})
        offer = Offer(f"{STATE_HEADING}\n{long}\n{first}", [], {1: line}, leading=("Wishes:",))
        limit = TOKENS.count(first) + 2
        assert fit_memory_context(TOKENS, offer, "the boat", limit) == (first, {})


def test_a_state_that_is_too_long_has_shorter_values_and_stays_json() -> None:
    long = {"first_name": "Anna", "discussion_summary": "tide " * 600, "goals": ["row " * 300]}
    context = fitted(f"{STATE_HEADING}\n{json.dumps(long)} (untrusted)\n{FACTS}", "boat", 300)
    heading, line, *_ = context.splitlines()
    assert heading == STATE_HEADING
    assert TOKENS.count(context) <= 300
    state, end = json.JSONDecoder().raw_decode(line)
    assert (state["first_name"], line[end:]) == ("Anna", " (untrusted)")
    assert state["discussion_summary"].startswith("tide tide")
    assert state["goals"][0].startswith("row row")


def test_kinds_share_the_limit_and_a_kind_may_use_what_others_leave() -> None:
    recalled = {
        seq: RecalledLine(f"[{seq} May 2025]", f"- Anna: The boat number {seq} sails on.")
        for seq in (9, 7, 8)
    }
    offer = Offer(f"{FACTS}\n{PAGES}", [], recalled)
    whole, limit = 3 * TOKENS.count(f"{recalled[9].date}\n{recalled[9].text}\n"), 110
    context, lines = fit_memory_context(TOKENS, offer, "Which boat?", limit)
    assert "Owns a red boat." in context
    assert list(lines) == [7, 8, 9]
    context, lines = fit_memory_context(TOKENS, offer, "Which boat?", 70)
    assert "Owns a red boat." in context
    assert len(lines) < 3
    assert (
        fit_memory_context(TOKENS, Offer("", [], recalled), "", whole)[1].keys() == recalled.keys()
    )


def test_recalled_messages_have_half_the_room_beside_what_is_pinned() -> None:
    always = "Facts that always count:\n#9 [today] Wants answers in French."
    long = json.dumps({"discussion_summary": "boat " * 900})
    told = f"{STATE_HEADING}\n{long}\n{always}\n{FACTS}\n{PAGES}"
    recalled = {
        seq: RecalledLine(f"[{seq} May 2025]", f"- Anna: {f'message{seq} ' * 8}")
        for seq in range(1, 31)
    }
    for limit in (200, 500, 900):
        context, lines = fit_memory_context(TOKENS, Offer(told, [], recalled), "boat", limit)
        assert always in context
        shown = TOKENS.count("\n".join(lines.values()))
        assert shown > limit // 2 - 40
        few = dict(list(recalled.items())[:2])
        assert fit_memory_context(TOKENS, Offer(told, [], few), "boat", limit)[1].keys() == {1, 2}
        assert shown + TOKENS.count(context) <= limit


def test_entries_with_as_many_shared_words_keep_their_order() -> None:
    first, *facts = FACTS.splitlines()
    offer = Offer(FACTS, [facts[3], facts[1]], {})
    context, _ = fit_memory_context(
        TOKENS, offer, "hello", TOKENS.count("\n".join((first, *facts[:2]))) + 2
    )
    assert context.splitlines() == [first, facts[1], facts[3]]


def test_a_short_talk_has_room_for_a_state_8_facts_and_4_synopses() -> None:
    """Beside a short window the default prompt has 2,700 tokens for memory."""
    goals = [f"Finish chapter {n} of the thesis before the committee meets" for n in "1234"]
    state = json.dumps({"first_name": "Anna", "current_goals": goals, "summary": "boat " * 150})
    facts = [f"#{n} [12 March 2025, 8 months ago] Fact {n} about Anna's work." for n in range(8)]
    synopses = [
        f"[{day} March 2025] Request: {'word ' * (150 if day == 2 else 65)}" for day in range(4)
    ]
    text = "\n".join(
        (STATE_HEADING, state, FACTS.splitlines()[0], *facts, "Earlier sessions:", *synopses)
    )
    line = RecalledLine("[2 May 2025]", f"- Anna: {'message ' * 25}")
    recalled = dict.fromkeys(range(1, 20), line)
    noted = [*facts, synopses[2], *synopses[:2], synopses[3]]
    context, lines = fit_memory_context(
        TOKENS, Offer(text, noted, recalled), "What about the tax?", 2_700
    )
    assert TOKENS.count(state) > 210
    assert set(text.splitlines()) == set(context.splitlines())
    assert lines


def test_a_line_that_begins_like_the_state_is_a_line_like_any_other() -> None:
    hours = f"Hours:\n{{Closed}} on Monday {'and also on holidays ' * 40}"
    assert TOKENS.count(fitted(hours, "boat", 60)) <= 60


def test_a_message_is_not_recalled_if_a_shown_fact_says_the_same() -> None:
    recalled = {
        1: RecalledLine("[1 May 2025]", "- Anna: I own a red boat."),
        2: RecalledLine("[2 May 2025]", "- Anna: It is fast."),
    }
    fact = FACTS.splitlines()[3]
    told = {1: ["#77 [today] Another fact.", fact]}
    _, lines = fit_memory_context(TOKENS, Offer(FACTS, [], recalled, told), "boat", 500)
    assert lines.keys() == {2}
    _, lines = fit_memory_context(TOKENS, Offer(PAGES, [], recalled, told), "boat", 500)
    assert lines.keys() == {1, 2}
