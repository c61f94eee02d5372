"""Finds replies that cost too much for their length: `python -m tests.hostile.growth 3000`.

Calls of functions are counted. Work inside a C function shows only as CPU time, so that of prose is
measured in the same run. It runs under a memory limit, because a reply of 187 characters once took
six gigabytes.
"""

import resource
import sys
from collections.abc import Callable, Iterator
from functools import cache, partial

from telegramify_markdown.latex_escape import const

from bot.reply.parts import Part
from bot.reply.render import render
from tests.work import calls, ratio, seconds

Shape = Callable[[int], str]
"""Returns a text of about the given number of characters."""

# The library's tables, and commands that its converter handles in other ways.
SYMBOLS = tuple(const.LATEX_SYMBOLS)
COMMANDS = (
    *const.COMBINING, *const.LATEX_STYLES, "\\not", "\\frac", "\\sqrt",
    "\\text", "\\operatorname", "\\mbox", "\\left", "\\right", "\\binom", "\\boxed", "\\pmod",
    "\\phantom", "\\overset", "\\underset", "\\stackrel", "\\substack", "\\color", "\\cancel",
    "\\overbrace", "\\underbrace", "\\xrightarrow", "\\xleftarrow", "\\begin", "\\end", "_", "^",
)  # fmt: skip

UNITS = (
    "- ", "* ", "+ ", "1. ", "1) ", "> ", ">", "- > ", "- 1. ", "- [ ] ", "- [x] a\n", "  - a\n",
    "- a\n\n***\n", " \t- a\n", "`", "``a` ", "`` ", "\\`", "```\n", "```a\n", "~~~\n",
    "~~~a~~~ ", "    a\n", "*", "**", "*a* ", "**a** ", "*a **b ", "a **b ", "*a_b ", "_", "_a ",
    "*a`b` ", "**`a` ", "~", "~~", "~~a~~ ", "~a~ ", "~a ~~b ~~~c ", "||", "||a|| ", "||a",
    "||*a|| b* ",
    "|", "|a", "|a\n", "| a | b |\n|---|---|\n", "|-", "- |", "[", "]", "![", "!", "[a](",
    "[a](b) ", "[a][", "[](", "[a](https://a.example) ", "[b.example](https://a.example) ",
    "[a]: ", "[a]: https://b.c\n", "![a](https://a.example) ", "[^1]: ", "<", "<a", "<a>", "<!--",
    "-->", "<?", "<![CDATA[", "<x@y.z>", "<https://a.example>", "&", "&amp;", "&#1", "\\", "\\\\",
    "\\[", "\\(", "\\[x^2\\] ", "\\(x^2\\) ", "\\(x^2\\)5 ", "$", "$$", "$x^2$ ", "$$x^2$$ ",
    "$`", "`$", "_{", "{", "}", "# ", "#", "a\n===\n", "---\n", "===\n", ">\n", "\n", "\n\n", " ",
    "  \n", "\t", "\x00", "\r\n", "a", "a ", "a\n", "a.", "a-", ":", "1", "1.\n", "é", "😀", "🇩",
    "e\u0301", "\u0301", "\u200d", "中。", "\ufdd0", "\ud83d",
)  # fmt: skip


def shapes() -> Iterator[tuple[str, Shape]]:
    for unit in UNITS:
        yield f"{unit!r} repeated", _repeated(unit)
    for command in (*COMMANDS, "\\alpha", "\\,"):
        yield f"{command} in many formulas", _repeated(f"${command}{{x}}$ ")
    for name in ("\\sqrt", "\\overline", "\\hat", "\\substack", "\\frac", "\\mathbb", "\\unknown"):
        yield f"{name} in one formula", _around(f"$${name}{{x}}", f"{name}{{x}}", "$$")
        yield f"{name} within itself", _around("$$", f"{name}{{", "}$$")
    yield "growing runs of backticks", _growing
    yield "lists of lists, line by line", _deepening("- " * 15)
    yield "quotes of quotes, line by line", _deepening("> " * 15)
    yield "deeper by a tab a line", _tabs
    yield "sixteen lists a line", _repeated("- " * 16 + "x\n")
    yield "one wide cell", lambda n: f"|a|b|\n|-|-|\n|{'x' * (n // 2)}|\n" + "|a\n" * (n // 6)
    yield "fifty columns", _around("|a" * 49 + "|\n" + "|-" * 49 + "|\n", "a\n", "")
    yield "one wide table", lambda n: "|a" * (n // 4) + "|\n" + "|-" * (n // 4) + "|\n|x\n"
    yield "many tables", _repeated(f"|a|\n|-|\n|{'x' * 180}|\n" + "a\n" * 90 + "\n")
    yield "bold around code", lambda n: "*a **b " * (n // 14) + "`c`" * (n // 6)
    yield "bold opened, then closed", lambda n: "**a " * (n // 8) + " a**" * (n // 8)
    yield "a long link, often used", lambda n: f"[a](http://{'x' * (n // 2)})" + "[a] " * (n // 8)
    yield "brackets opened, then closed", lambda n: "[" * (n // 2) + "a" + "](x)" * (n // 8)
    yield "a link that names many hosts", lambda n: f"[{'a.bc ' * (n // 5)}](https://a.example)"
    yield "full formulas", _repeated("$" + "\\frac{a_1}{b}" * 20 + "$\n")
    yield (
        "options within options",
        _repeated("$$" + "\\sqrt[a" * 7 + "x" * 1300 + "]" * 7 + "$$\n\n"),
    )


def _repeated(unit: str) -> Shape:
    return lambda chars: unit * (chars // len(unit))


def _around(before: str, unit: str, after: str) -> Shape:
    return lambda chars: before + unit * (chars // len(unit)) + after


def _growing(chars: int) -> str:
    return " ".join("`" * length for length in range(1, int((2 * chars) ** 0.5)))


def _deepening(marks: str) -> Shape:
    def text(chars: int) -> str:
        lines = int((chars / len(marks) * 2) ** 0.5)
        return "".join(f"{' ' * (len(marks) * line)}{marks}x\n" for line in range(lines))

    return text


def _tabs(chars: int) -> str:
    return "".join("\t" * depth + "- a\n" for depth in range(int((2 * chars) ** 0.5)))


_MEMORY = 2**30
_MAX_OUTPUT = 4
"""Maximum of characters shown for each character of the reply; roots and fractions add signs."""

_MAX_CALLS, _MAX_TIMES = 100, 100
"""Calls for each character, and how often the CPU time of prose; shapes take up to 59 and 26."""

_PROSE = "The weather was grey and nobody had anything to say about it at all. "


def faults(chars: int) -> Iterator[str]:
    """Yield the shapes that cost too much for a reply of `chars` characters."""
    for command in (*SYMBOLS, *COMMANDS):
        for depth in (8, 16, 24):
            yield from _faults(f"{command} {depth} deep", partial(_nested, command, depth), chars)
    for name, shape in shapes():
        yield from _faults(name, shape, chars)


def _nested(command: str, depth: int, _: int) -> str:
    """Return a formula in which `command` is nested in itself."""
    return f"${f'{command}{{' * depth}x{'}' * depth}$"


def _faults(name: str, shape: Shape, chars: int) -> Iterator[str]:
    try:
        source, prose = shape(chars), _repeated(_PROSE)(chars)
        parts: list[Part] = []
        called = calls(lambda: parts.extend(render(source)))
        shown = sum(len(part.text) for part in parts)
        if shown > _MAX_OUTPUT * len(source) + 64:
            yield f"{name}: {len(source)} characters are shown as {shown}"
        if called > _MAX_CALLS * chars:
            yield f"{name}: {chars} characters take {called} calls"
        if seconds(lambda: render(source)) <= _MAX_TIMES / 2 * _seconds_of_prose(chars):
            return
        times = ratio(lambda: render(source), lambda: render(prose), _MAX_TIMES, rounds=1)
        if times > _MAX_TIMES:
            yield f"{name}: {chars} characters take {times:.0f} times as long as prose"
    except MemoryError:
        yield f"{name}: {chars} characters fill the memory"


@cache
def _seconds_of_prose(chars: int) -> float:
    prose = _repeated(_PROSE)(chars)
    return min(seconds(lambda: render(prose)) for _ in range(5))


def main() -> int:
    """Print the faults found; return 1 when there are any."""
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    found = list(faults(int(sys.argv[1])))
    sys.stdout.writelines(f"{fault}\n" for fault in found)
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
