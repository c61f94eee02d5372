"""Long texts are cut where a reader expects it, and nothing visible is lost."""

from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import Entity, Part
from bot.reply.split import split, with_line
from tests.bot.reply.telegram_rules import faults

FAMILY = "👨\u200d👩\u200d👧\u200d👦"
CLUSTERS = [FAMILY, "🇩🇪", "👍🏽", "e\u0301", "क\u094d\u0937", "❤\ufe0f", "x", "я", "סּ"]
NASTY = st.lists(
    st.tuples(
        st.sampled_from([*CLUSTERS, "word ", "a\n", "\n\n", " ", "\u200b", "…", "中。"]),
        st.integers(1, 900),
    ).map(lambda run: run[0] * run[1]),
    max_size=12,
).map("".join)


def squeezed(text: str) -> str:
    return "".join(text.split())


def visible(text: str) -> str:
    return squeezed(text).replace("\u200b", "")


@given(NASTY)
def test_parts_fit_and_keep_every_visible_character(text: str) -> None:
    parts = split(text)
    assert [fault for part in parts for fault in faults(part)] == []
    assert visible("".join(part.text for part in parts)) == visible(text)


@given(st.sampled_from(CLUSTERS), st.integers(4000, 9000), st.text("ab", max_size=3))
def test_a_cut_never_falls_inside_a_character(cluster: str, times: int, before: str) -> None:
    text = before + cluster * (times // len(cluster))
    parts = split(text)
    assert "".join(part.text for part in parts) == text
    for part in parts:
        assert part.text.removeprefix(before).replace(cluster, "") == ""


def test_a_character_of_endless_marks_is_cut() -> None:
    text = "e" + "\u0301" * 9000
    assert "".join(part.text for part in split(text)) == text


def test_a_short_text_is_one_part_and_a_blank_one_has_none() -> None:
    entities = (Entity("bold", 0, 2),)
    assert split("hi there", entities) == (Part("hi there", entities),)
    assert split("") == split(" \n\u200b\t") == ()


def test_cuts_prefer_paragraphs_then_lines_then_sentences_then_words() -> None:
    paragraphs = "\n\n".join(["One. Two.\nThree." + "x" * 900] * 6)
    lines = "\n".join(["One. Two." + "x" * 900] * 6)
    sentences = " ".join(["One word" + "x" * 900 + "."] * 6)
    words = " ".join(["word" + "x" * 900] * 6)
    assert [part.text.count("\n\n") for part in split(paragraphs)] == [3, 1]
    assert [part.text.count("\n") for part in split(lines)] == [3, 1]
    assert [part.text.count(".") for part in split(sentences)] == [4, 2]
    assert [part.text.count(" ") for part in split(words)] == [3, 1]


def test_a_sentence_may_end_with_a_quote_and_does_not_end_at_an_abbreviation() -> None:
    text = "word " * 700 + "He said “go.” Then e.g. this" + " word" * 400
    assert split(text)[0].text.endswith("“go.”")


def test_an_entity_continues_in_the_next_part() -> None:
    text = "a" * 4000 + " " + "b" * 4000
    parts = split(text, (Entity("bold", 3990, 20),))
    assert [part.entities for part in parts] == [
        (Entity("bold", 3990, 10),),
        (Entity("bold", 0, 9),),
    ]


def test_a_code_block_that_fits_one_part_is_not_cut() -> None:
    code = "\n".join(f"line {number}" for number in range(300))
    text = f"{'before ' * 400}\n{code}\n{'after ' * 400}"
    pre = Entity("pre", text.index(code), len(code), language="py")
    parts = split(text, (pre,))
    assert parts[1].text.startswith(code)
    assert parts[1].entities == (Entity("pre", 0, len(code), language="py"),)


def test_a_code_block_too_long_for_one_part_keeps_its_indentation() -> None:
    code = "\n".join(f"    line {number}" for number in range(1000))
    parts = split(code, (Entity("pre", 0, len(code), language="py"),))
    assert "\n".join(part.text for part in parts) == code
    assert {part.entities for part in parts} == {
        (Entity("pre", 0, len(part.text), language="py"),) for part in parts
    }


def test_more_than_a_hundred_entities_need_another_part() -> None:
    text = "bold " * 300
    parts = split(text, tuple(Entity("bold", 5 * at, 4) for at in range(300)))
    assert [fault for part in parts for fault in faults(part)] == []
    assert sum(len(part.entities) for part in parts) == 300
    assert squeezed("".join(part.text for part in parts)) == squeezed(text)


def test_an_entity_over_white_space_is_left_out() -> None:
    assert split("a \n b", (Entity("italic", 1, 3),)) == (Part("a \n b"),)


def test_our_line_is_added_to_the_last_part_or_becomes_a_part() -> None:
    line = Part("Kept: 🧭", (Entity("italic", 0, 8),))
    below = with_line((Part("a"), Part("😀", (Entity("bold", 0, 2),))), line)
    italic = Entity("italic", 4, 8)
    assert below == (Part("a"), Part("😀\n\nKept: 🧭", (Entity("bold", 0, 2), italic)))
    for full in (Part("x" * 4_087), Part("x", (Entity("bold", 0, 1),) * 100)):
        assert with_line((full,), line) == (full, line)
    assert with_line((Part("x" * 4_086),), line)[0].text.endswith("🧭")
