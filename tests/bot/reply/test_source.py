"""What the parser would lose is protected before it runs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reply.parts import Part
from bot.reply.source import clean, is_worth_rich, protect, restore, rich_markdown
from memory.behaviors.tool_output import OutgoingFile

MARKUP = st.lists(
    st.sampled_from(
        ["<", "b>", "|", "||", "$", "[", "]", ":", "\\", "`", "```", "\n", " ", "x", "_", "("]
    )
).map("".join)


def test_a_lone_surrogate_is_replaced_and_a_pair_becomes_its_character() -> None:
    assert clean("a\ud83d b\ude00 \ud83d\ude00") == "a\ufffd b\ufffd 😀"


@given(st.text(st.characters()))
def test_clean_text_can_be_encoded_and_is_not_changed_again(text: str) -> None:
    assert clean(text).encode() is not None
    assert "\r" not in clean(text)
    assert clean(clean(text)) == clean(text)


@given(MARKUP.filter(lambda text: "\\(" not in text and "\\[" not in text and text.count("$") < 2))
def test_protected_text_is_restored(text: str) -> None:
    assert restore(protect(text)) == text


@pytest.mark.parametrize(
    "kept",
    [
        "<https://a.example/x>",
        "<mailto:a@b.example>",
        "||a secret||",
        "$n$",
        "[text](https://a.example)",
        "| a | b |\n|---|---|",
        r"\<b\> \$5 \[x\]",
    ],
)
def test_markup_that_the_parser_reads_well_is_not_changed(kept: str) -> None:
    assert protect(kept) == kept


@pytest.mark.parametrize(
    ("latex", "formula"),
    [
        (r"\(x^2\)", "$x²$"),
        (r"$x^2$", "$x²$"),
        (r"\[ \alpha + 1 \]", r"$$α + 1$$"),
        ("\\[\na = b\n\\]", "$$a = b$$"),
        ("$$\na = b\n$$", "$$a = b$$"),
        (r"- \(a_1\)", "- $a₁$"),
    ],
)
def test_latex_becomes_a_formula_in_unicode(latex: str, formula: str) -> None:
    assert restore(protect(latex)) == formula


@pytest.mark.parametrize(
    "text",
    [r"\(a note\)", r"\[1\]", r"list\[a_b\]", r"`\(x^2\)`", "```\n\\(x^2\\)\n```", "    \\(x^2\\)",
     "~~~\n\\[x^2\\]", "- ```\n  \\(x^2\\)\n  ```"],
)  # fmt: skip
def test_escaped_brackets_and_code_are_not_formulas(text: str) -> None:
    assert protect(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "$5 and 6$ more",
        "$PATH:$HOME",
        "$AAPL/$TSLA",
        "a $5-$10 range",
        "{$x}${y}",
        "echo $$ and $$",
    ],
)
def test_dollar_signs_outside_formulas_are_text(text: str) -> None:
    assert "$" not in protect(text)


TABLE = "| a | b |\n|---|:-:|\n| 1 | 2 |"
PARTS = (Part("x"),)


@pytest.mark.parametrize(
    "markdown",
    [
        TABLE,
        f"Look:\n\n{TABLE}\n\nSee https://example.com.",
        "a | b\n--|--\n1 | 2",
        "So:\n\n$$\nE = mc^2\n$$",
        r"So: \[ \frac{a}{b} \]",
        f"{TABLE}\n\n```py\nx[0] = 1\n```\n`a < b`",
    ],
)
def test_tables_and_block_formulas_are_worth_a_rich_message(markdown: str) -> None:
    assert is_worth_rich(markdown, PARTS)


@pytest.mark.parametrize(
    "markdown",
    [
        *["Hello", "a | b", "| - |", "**bold** $x^2$", "from $$5 to $$6", r"\[sic\]", "- a\n- b"],
        *[f"```\n{TABLE}\n```", "`$$x^2$$`"],
        *[f"{TABLE}\n\n[bank](https://evil.example)", f"{TABLE}\n![x](https://evil.example/?q=1)"],
        *[
            f"{TABLE}\n\n[bank]: https://evil.example",
            f"{TABLE}\n\n<a href='https://evil.example'>",
        ],
        *[f"{TABLE}\n\n<https://evil.example>", f"{TABLE} tg://user?id=1", f"{TABLE}\n<!-- x -->"],
        *[f"{TABLE}\n\nSee\n    [bank](https://evil.example)", f"{TABLE}\n\n``` `\n[x](y)\n```"],
        *["|" + "a|" * 21 + "\n|" + "-|" * 21, TABLE + "\n| 1 | 2 |" * 300],
    ],
)
def test_anything_else_and_a_reply_with_a_file_stay_plain(markdown: str) -> None:
    assert not is_worth_rich(markdown, PARTS)
    assert not is_worth_rich(TABLE, (Part("x", file=OutgoingFile("code.py", b"")),))


def test_formulas_get_dollars_and_prices_keep_theirs() -> None:
    shown = rich_markdown(r"\(a_1\) costs $5 or $6, \[ \frac{a}{b} \] `$x` $y^2$ \[sic\]")
    assert shown == r"$a_1$ costs \$5 or \$6, $$\frac{a}{b}$$ `$x` $y^2$ \[sic\]"
