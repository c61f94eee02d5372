"""What behaviors tell loses whole entries, those first that say least about the question."""

import json

from bot.prompt.told import Offer, told_within
from memory.text.tokens import SHORTENED, TokenCounter

STATE_HEADING = "State of this conversation (JSON):"
STATE = f'{STATE_HEADING}\n{{"first_name":"Anna","goals":["buy a boat"]}}'
FACTS = "Facts, by id and since when they are known:\n" + "\n".join(
    f"#{number} [12 March 2025, 8 months ago] {text}"
    for number, text in enumerate(
        ("Has a dog.", "Is allergic to nuts.", "Owns a red boat.", "Lives in Graz."), 1
    )
)
PAGES = "From documents:\n[Manual] Press the button.\n  Then wait."
TOLD = f"{STATE}\n{FACTS}\n{PAGES}"


def told_of(tokens: TokenCounter, told: str, query: str, limit: int) -> str:
    return told_within(tokens, Offer(told, [], {}), query, limit)[0]


def test_what_fits_is_told_as_it_is(tokens: TokenCounter) -> None:
    assert told_of(tokens, TOLD, "boat", 1_000) == TOLD


def test_the_state_stays_whole_and_what_the_question_is_about_comes_next(
    tokens: TokenCounter,
) -> None:
    limit = tokens.count(STATE) + 40
    told = told_of(tokens, TOLD, "What colour is my boat?", limit)
    assert tokens.count(told) <= limit
    assert told.startswith(STATE)
    assert "Owns a red boat." in told
    assert set(told.splitlines()) < set(TOLD.splitlines())
    assert "Manual" not in told


def test_an_indented_line_stays_with_the_state(tokens: TokenCounter) -> None:
    state = f'{STATE}\n  Back after 5 days, still open: "The tax return"'
    told = told_of(tokens, f"{state}\n{FACTS}", "boat", tokens.count(state) + 8)
    assert told == state


def test_a_heading_without_entries_is_left_out(tokens: TokenCounter) -> None:
    told = told_of(tokens, f"{FACTS}\n{PAGES}", "What does the manual say?", 24)
    assert told == PAGES


def test_only_a_long_text_is_shortened(tokens: TokenCounter) -> None:
    told = told_of(tokens, "Earlier sessions:\n" + "word " * 500, "word", 100)
    assert SHORTENED in told
    assert 80 < tokens.count(told) <= 100


def test_instructions_are_never_left_out_for_what_is_asked(tokens: TokenCounter) -> None:
    told = "\n".join(("Instructions for this chat:", "  Be brief.", "Facts:", *["#1 A boat."] * 40))
    assert told_of(tokens, told, "the boat", 40).startswith(told[:40])


def test_a_state_that_is_too_long_has_shorter_values_and_stays_json(tokens: TokenCounter) -> None:
    long = {"first_name": "Anna", "discussion_summary": "tide " * 600, "goals": ["row " * 300]}
    told = told_of(tokens, f"{STATE_HEADING}\n{json.dumps(long)} (untrusted)\n{FACTS}", "boat", 300)
    heading, line, *_ = told.splitlines()
    assert heading == STATE_HEADING
    assert tokens.count(told) <= 300
    state, end = json.JSONDecoder().raw_decode(line)
    assert (state["first_name"], line[end:]) == ("Anna", " (untrusted)")
    assert state["discussion_summary"].startswith("tide tide")
    assert state["goals"][0].startswith("row row")


def test_lines_of_all_kinds_share_the_room_and_a_kind_leaves_what_it_does_not_need(
    tokens: TokenCounter,
) -> None:
    recalled = {seq: f"[yesterday] Anna: The boat number {seq} sails on." for seq in (9, 7, 8)}
    offer = Offer(f"{FACTS}\n{PAGES}", [], recalled)
    whole, limit = 3 * tokens.count(f"{recalled[9]}\n"), 110
    told, lines = told_within(tokens, offer, "Which boat?", limit)
    assert "Owns a red boat." in told
    assert list(lines) == [7, 8, 9]
    told, lines = told_within(tokens, offer, "Which boat?", 50)
    assert "Owns a red boat." in told
    assert len(lines) < 3
    assert told_within(tokens, Offer("", [], recalled), "", whole)[1].keys() == recalled.keys()


def test_pinned_facts_are_told_before_the_state_and_anything_else(tokens: TokenCounter) -> None:
    always = "Facts that always count:\n#9 [today] Wants answers in French."
    long = json.dumps({"discussion_summary": "boat " * 900})
    told = told_of(tokens, f"{STATE_HEADING}\n{long}\n{always}\n{FACTS}", "boat", 120)
    assert always in told
    assert tokens.count(told) <= 120


def test_lines_that_share_no_more_words_count_in_the_order_in_which_they_were_noted(
    tokens: TokenCounter,
) -> None:
    first, *facts = FACTS.splitlines()
    offer = Offer(FACTS, [facts[3], facts[1]], {})
    told, _ = told_within(tokens, offer, "hello", tokens.count("\n".join((first, *facts[:2]))) + 2)
    assert told.splitlines() == [first, facts[1], facts[3]]


def test_a_default_prompt_tells_all_of_a_state_eight_facts_and_four_synopses(
    tokens: TokenCounter,
) -> None:
    """The default prompt has about 1,000 tokens for memory; messages were found for all of them."""
    goals = [
        f"Finish chapter {number} of the thesis before the committee meets" for number in "1234"
    ]
    state = json.dumps({"first_name": "Anna", "current_goals": goals, "summary": "boat " * 150})
    facts = [f"#{n} [12 March 2025, 8 months ago] Fact {n} about Anna's work." for n in range(8)]
    synopses = [
        f"[{day} March 2025] Request: {'word ' * (150 if day == 2 else 65)}" for day in range(4)
    ]
    text = "\n".join(
        (STATE_HEADING, state, FACTS.splitlines()[0], *facts, "Earlier sessions:", *synopses)
    )
    recalled = dict.fromkeys(range(1, 20), f"[2 May 2025] Anna: {'message ' * 25}")
    noted = [*facts, synopses[2], *synopses[:2], synopses[3]]
    told, lines = told_within(tokens, Offer(text, noted, recalled), "What about the tax?", 1_000)
    assert tokens.count(state) > 210
    assert set(text.splitlines()) == set(told.splitlines())
    assert lines
