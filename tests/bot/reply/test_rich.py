"""Only tables and block formulas make a rich message, and only if nothing in it needs care."""

import pytest

from bot.reply.parts import Part
from bot.reply.source import is_worth_rich, rich_markdown
from memory.behaviors.tool_output import OutgoingFile

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
def test_anything_else_stays_plain(markdown: str) -> None:
    assert not is_worth_rich(markdown, PARTS)


def test_a_reply_with_a_file_stays_plain() -> None:
    assert not is_worth_rich(TABLE, (Part("x", file=OutgoingFile("code.py", b"")),))


def test_formulas_get_dollars_and_prices_keep_theirs() -> None:
    shown = rich_markdown(r"\(a_1\) costs $5 or $6, \[ \frac{a}{b} \] `$x` $y^2$ \[sic\]")
    assert shown == r"$a_1$ costs \$5 or \$6, $$\frac{a}{b}$$ `$x` $y^2$ \[sic\]"
