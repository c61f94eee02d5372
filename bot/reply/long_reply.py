"""A reply of any length as parts: what is too long for messages is sent as files.

A code block beyond one message becomes a file, and its name and length stand in its place. A reply
that still takes more than `MAX_PARTS` messages becomes one file, and the chat shows how it begins.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise

from bot.reply.parts import Part
from bot.reply.render import render, rendered
from bot.reply.source import FORMULA_MARKS, TOKEN, clean, formula_in
from bot.reply.split import MAX_CAPTION_UTF16, MAX_UTF16, CodeBlock, code_blocks, split, with_line
from bot.reply.utf16 import utf16_length
from memory.behaviors.tool_output import OutgoingFile

MAX_PARTS = 4
MAX_CHARS = 32_768
"""Characters of a reply that are shown and kept; the rest is left out."""

_MAX_BEGINNING_UTF16 = 600
_TEXT = "txt"

_LANGUAGES = """
    python=py javascript=js typescript=ts ruby=rb rust=rs kotlin=kt c++=cpp csharp=cs c#=cs
    golang=go perl=pl haskell=hs elixir=ex clojure=clj julia=jl latex=tex bash=sh shell=sh zsh=sh
    powershell=ps1 markdown=md yml=yaml patch=diff makefile=mk fortran=f90 matlab=m
    py js jsx ts tsx rb rs go java kt c h cpp hpp cs swift php sh ps1 sql html css scss json yaml
    toml xml ini csv md r scala lua dart hs ex clj jl tex diff vue svelte graphql proto asm zig svg
    f90 m pl tf mk
"""
"""Languages, each with the ending of its files if that differs from its name.

No other text after a fence decides about an ending, because a file must not look like a program
only because a text says so.
"""

_WORDS = (word.partition("=") for word in _LANGUAGES.split())
_EXTENSIONS = {language: extension or language for language, _, extension in _WORDS}


async def reply_parts(markdown: str, say: Callable[..., str]) -> tuple[tuple[Part, ...], bool]:
    """Return the parts that show a reply, and whether it is shown to its end.

    `say` returns a sentence by its key and values, as Markdown.
    """
    source = clean(markdown[:MAX_CHARS])
    text, files = _without_long_code(source, say)
    parts = await rendered(text)
    if len(parts) > MAX_PARTS:
        ending = "md" if any(part.entities for part in parts) else _TEXT
        whole = OutgoingFile(f"answer.{ending}", source.encode())
        beginning = split(parts[0].text, parts[0].entities, _MAX_BEGINNING_UTF16)[:1]
        parts, files = with_line(beginning, *render(say("answer.file"))), [whole]
    if files:
        parts = _with_files(parts, files)
    return parts, len(markdown) <= MAX_CHARS


def _without_long_code(source: str, say: Callable[..., str]) -> tuple[str, list[OutgoingFile]]:
    """Return the text with the name of a file in place of each long code block, and the files."""
    pieces, files, at = list[str](), list[OutgoingFile](), 0
    for block in code_blocks(source):
        code = source[block.code_start : block.code_end]
        if ">" in block.before or utf16_length(code) <= MAX_UTF16:
            continue
        file = _code_file(block, code, len(files) + 1)
        files.append(file)
        lines = say("answer.lines", count=code.rstrip("\n").count("\n") + 1)
        pieces += [source[at : block.start], f"{block.before}📎 `{file.name}` ({lines})"]
        at = block.end
    return "".join((*pieces, source[at:])), files


def _code_file(block: CodeBlock, code: str, number: int) -> OutgoingFile:
    """Return a code block as a file; code in a list loses the indentation of the list."""
    words = block.info.split()
    language = words[0].lower() if words else ""
    extension = _EXTENSIONS.get(language, _TEXT)
    indent = len(block.before)
    lines = (line[min(indent, len(line) - len(line.lstrip(" "))) :] for line in code.split("\n"))
    name = f"code-{number}.{extension}" if number > 1 else f"code.{extension}"
    return OutgoingFile(name, "\n".join(lines).encode())


def _with_files(parts: tuple[Part, ...], files: list[OutgoingFile]) -> tuple[Part, ...]:
    """Send the first file with the last part if that fits as its caption."""
    *before, last = parts
    if utf16_length(last.text) <= MAX_CAPTION_UTF16:
        first, *files = files
        parts = (*before, replace(last, file=first))
    return (*parts, *(Part("", file=file) for file in files))


_MAX_COLUMNS = 20
_MAX_LINES = 240
"""Telegram takes 500 blocks, and a line is at most two: an entry of a list, and its text."""

_NOT_RAW = re.compile(r"!\[|\]\(|\]\[|\]:|<[A-Za-z/!?]|tg:", re.IGNORECASE)
_RULE = frozenset("|-: \t")


def is_worth_rich(markdown: str, parts: Sequence[Part]) -> bool:
    """Return whether a reply has a table or a block formula, and nothing that must not be sent raw.

    `parts` show the reply without a rich message. A reply with a file stays as it is.
    """
    if not ("|" in markdown or "$$" in markdown or "\\[" in markdown):
        return False
    if any(part.file for part in parts) or markdown.count("\n") >= _MAX_LINES:
        return False
    text = TOKEN.sub(lambda token: "" if token.lastgroup == "code" else token[0], markdown)
    columns = _columns(text.split("\n"))
    blocks = (t for t in TOKEN.finditer(markdown) if FORMULA_MARKS.get(t.lastgroup or "") == "$$")
    is_fit = max(columns, default=0) <= _MAX_COLUMNS and not _NOT_RAW.search(markdown)
    return is_fit and (any(map(formula_in, blocks)) or bool(columns))


def rich_markdown(markdown: str) -> str:
    """Return the Markdown with dollars around all formulas, and with all other dollars escaped."""
    return TOKEN.sub(_with_dollars, markdown)


def _with_dollars(token: re.Match[str]) -> str:
    if formula := formula_in(token):
        mark = FORMULA_MARKS[token.lastgroup or ""]
        return f"{mark}{formula.strip()}{mark}"
    is_money = token.lastgroup in ("literal", "dollar", "dollars")
    return token[0].replace("$", "\\$") if is_money else token[0]


def _columns(lines: Sequence[str]) -> list[int]:
    """Return the number of columns of each table: its second line is a rule."""
    rules = [
        rule.strip().strip("|")
        for row, rule in pairwise(lines)
        if "|" in row and "-" in rule and "|" in rule and _RULE.issuperset(rule)
    ]
    return [rule.count("|") + 1 for rule in rules]
