"""Markdown of any kind becomes parts that Telegram accepts, and no word is lost."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import Entity, Part
from bot.reply.render import plain, render
from tests.bot.reply.telegram_rules import faults
from tests.work import calls

WORDS = st.sampled_from(
    ["word", "שלום", "سلام", "привет", "naïve", "e\u0301te\u0301", "👨\u200d👩\u200d👧", "中文"]
)
SIGNS = st.sampled_from([
    "*", "**", "***", "_", "`", "```", "```py\n", "~~", "~~~\n", "# ", "> ", "- ", "1. ", "- [ ] ",
    "\\]", "[", "]", "](https://a.example)", "![", "](/path)", "]: ", "[^1]: ", "---", "===", "|",
    "||", "\n|-|-|\n", "<", ">", "<b>", "</b>", "<!--", "-->", "$", "$$", "\\", "\\(", "\\)", "\\[",
    "\n", "\n\n", "  \n", "    ", "\t", " ", "\r", "\x00", "\ud83d", "\ude00", "\u200b", "\u200d",
    "\ufdd0", "&lt;", "&amp", "javascript:", "https://a.example",
])  # fmt: skip
NASTY = st.lists(WORDS | SIGNS | st.text(st.characters(), max_size=5), max_size=60).map("".join)
LATIN = st.text("abcdefgh", min_size=1, max_size=9)


def only(markdown: str) -> Part:
    (part,) = render(markdown)
    return part


def shown(markdown: str) -> str:
    return "".join(part.text for part in render(markdown))


def in_order(words: list[str], text: str) -> bool:
    at = 0
    for word in words:
        at = text.find(word, at) + len(word)
        if at < len(word):
            return False
    return True


@given(NASTY)
def test_telegram_accepts_every_part(markdown: str) -> None:
    parts = render(markdown) + plain(markdown)
    assert [fault for part in parts for fault in faults(part)] == []


@given(st.lists(st.lists(LATIN, min_size=1).map(" ".join)).map("\n".join))
def test_plain_text_is_shown_exactly(text: str) -> None:
    assert shown(text) == text


@given(st.lists(st.tuples(SIGNS.filter(lambda sign: not {*sign} & {*"&(:$`~\\"}), LATIN)))
def test_no_word_is_lost_in_markup(pieces: list[tuple[str, str]]) -> None:
    markdown = "".join(sign + word for sign, word in pieces)
    assert in_order([word for _, word in pieces], shown(markdown))


@given(st.text("ab<>|$[]():\\_^{}*#- \n", min_size=1, max_size=80).filter(str.strip))
def test_code_in_a_fence_is_shown_as_written(code: str) -> None:
    part = only(f"Look:\n\n```py\n{code}\n```\n\nDone.")
    units = part.text.encode("utf-16-le")
    (pre,) = (one for one in part.entities if one.type == "pre")
    assert units[2 * pre.offset : 2 * pre.end].decode("utf-16-le") == code
    assert pre.language == "py"


@given(st.text(st.characters(exclude_categories=["Cs", "Co", "Cn"]), max_size=300))
def test_plain_does_not_interpret_markdown(text: str) -> None:
    expected = "".join(text.replace("\ufdd0", "").split())
    if parts := plain(text):
        assert "".join("".join(part.text for part in parts).split()) == expected
    assert [part.entities for part in parts if part.entities] == []


@pytest.mark.parametrize("blank", ["", "  \n", "\u200b", "\n\n"])
def test_a_text_without_visible_characters_gives_no_parts(blank: str) -> None:
    assert render(blank) == plain(blank) == ()


@pytest.mark.parametrize(
    "text",
    [
        *("#", "**", ">", "```", "[x]: y"),
        "a <b>bold</b> word",
        "List<int> and Map<String, List<int>>",
        "<div>\nhello\n</div>",
        "<think>so</think> <!-- and --> <br/>",
        "x <y and y> z",
        "if (a || b || c)",
        "[Alice]: hello",
        "[1]: https://a.example",
        "[](https://a.example)",
        "costs $5 or $PATH:$HOME",
        "<a href='https://a.example'>text</a>",
    ],
)
def test_signs_that_mark_nothing_and_text_that_the_parser_would_drop_are_shown(text: str) -> None:
    assert only(text) == Part(text)


@pytest.mark.parametrize(
    ("markdown", "text", "entity"),
    [
        ("# Title\n\ntext", "Title\n\ntext", Entity("bold", 0, 5)),  # without emoji
        ("😀 **b**", "😀 b", Entity("bold", 3, 1)),  # counted in UTF-16 units
        ("~5 or ~6, ~~not 7~~", "~5 or ~6, not 7", Entity("strikethrough", 10, 5)),
        ("it is ||a <b>||", "it is a <b>", Entity("spoiler", 6, 5)),
    ],
)
def test_signs_become_entities(markdown: str, text: str, entity: Entity) -> None:
    assert only(markdown) == Part(text, (entity,))


def test_lists_have_plain_bullets() -> None:
    markdown = "- a\n  - b\n- [ ] open\n- [x] done\n\n1. one\n2. two"
    assert shown(markdown) == "• a\n  • b\n☐ open\n☑ done\n\n1. one\n2. two"


def test_placeholders_are_restored_in_links_and_languages() -> None:
    part = only("[a](https://a.example/?q=$x||y)\n\n```c++,x $\n1\n```")
    assert part.entities[0].url == "https://a.example/?q=$x||y"
    assert part.entities[1].language == "c++"


def test_formulas_are_written_in_unicode() -> None:
    part = only(r"So \(\frac{a}{b}\), $x^2$ and \[ \sum_{i=1}^n x_i < \infty \]")
    assert part.text == "So a/b, x² and ∑ᵢ₌₁ⁿ xᵢ < ∞"
    assert [one.type for one in part.entities] == ["code", "code", "pre"]


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\sqrt{b^2-4ac}", "√(b²-4ac)"),
        (r"\sqrt{x}", "√x"),
        (r"\sqrt[3]{a+b}", "∛(a+b)"),
        (r"\frac{-b \pm \sqrt{b^2-4ac}}{2a}", "(-b ± √(b²-4ac))/2a"),
        (r"\sqrt{\sqrt{x+1}}", "√(√(x+1))"),
        (r"\overline{ab}", "a\u0305b\u0305"),
        (r"\overline{\overline{\underline{a}}}", "a\u0305\u0332"),
        (r"\begin{pmatrix} a & b \\ c & d \end{pmatrix}", "(a  b\nc  d)"),
        (r"x_1 = \_y\_", "x₁ = _y_"),
    ],
)
def test_a_formula_is_written_as_on_paper(latex: str, shown: str) -> None:
    assert only(f"${latex}$").text == only(f"$${latex}$$").text == shown


@pytest.mark.parametrize(
    "latex", ["\\sqrt{" * 9 + "x" + "}" * 9, "\\hat" * 9 + "x", "a" * 280 + "{" * 9 + "}" * 9]
)
def test_a_formula_that_is_nested_too_deep_is_shown_as_written(latex: str) -> None:
    assert only(f"So ${latex}$ *there*").text == f"So ${latex}$ there"


def test_a_wide_table_loses_its_padding_and_later_entities_move_along() -> None:
    long = " ".join(["long"] * 30)
    part = only(f"| a | b |\n|---|---|\n| x | y |\n| {long} | 😀 |\n\n**after**")
    assert part.text == f"a | b\n---+---\nx | y\n{long} | 😀\n\nafter"
    assert part.entities == (
        Entity("pre", 0, 21 + len(long) + 5 - 1),
        Entity("bold", 21 + len(long) + 5 + 1, 5),
    )


def test_a_narrow_table_is_aligned_and_code_that_looks_like_a_wide_one_is_not_changed() -> None:
    assert shown("| a | b |\n|---|---|\n| 100 | 2 |") == "a   | b\n----+--\n100 | 2"
    table = "a" + " " * 80 + "| b\n" + "-" * 81 + "+--"
    assert shown(f"```\n{table}\n```") == table


@pytest.mark.parametrize(
    "markdown",
    [
        "```py\nunclosed " + "x" * 9000,
        "> " * 3000 + "deep",
        "1. " * 3000 + "deep",
        "*" * 9000,
        "[" * 9000,
        "\\[" * 4500,
        "$$" + "\\sqrt{" * 1500,
        "|a" * 2000 + "|\n" + "|-" * 2000 + "|\n" + "|x\n" * 2000,
        "x" * 20_000,
        "😀" * 9000,
        "a **b " * 2000,
    ],
    ids=lambda markdown: markdown[:8],
)
def test_hostile_replies_become_few_parts(markdown: str) -> None:
    """`tests/hostile/test_rendering.py` shows that none of them takes quadratic time."""
    parts = render(markdown)
    assert [fault for part in parts for fault in faults(part)] == []
    assert 1 <= len(parts) <= 25


def test_a_usual_reply_takes_at_most_twenty_calls_a_character() -> None:
    prose = "## Head\n\nSome **bold** prose with `code`, a [link](https://a.example) and $5.\n\n"
    markdown = (prose + "- one\n- two\n```py\nprint(1)\n```\n") * 50
    render(markdown)
    assert calls(lambda: render(markdown)) < 20 * len(markdown)
