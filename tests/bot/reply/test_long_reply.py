"""What is too long for messages comes as files; nothing that was written is left out."""

from functools import partial

import pytest
from structlog.testing import capture_logs

from bot.language.catalogue import Catalogue
from bot.reply.parts import Part, utf16_length
from bot.reply.render import MAX_CHARS, MAX_PARTS, plain, render, reply_parts
from bot.reply.source import clean
from bot.reply.split import MAX_CAPTION_UTF16
from tests.bot.reply.telegram_rules import faults

PARAGRAPH = "A **bold** word and some more of them. " * 40
CODE = "\n".join(f"print({number})  # 🧭" for number in range(300))
SAY = partial(Catalogue().text, "uk")
NOTE = SAY("answer.file")


async def parts_of(markdown: str) -> tuple[Part, ...]:
    parts, _ = await reply_parts(markdown, SAY)
    assert [fault for part in parts if part.text for fault in faults(part)] == []
    captions = [part.text for part in parts if part.file]
    assert max(map(utf16_length, captions), default=0) <= MAX_CAPTION_UTF16
    return parts


def files_of(parts: tuple[Part, ...]) -> dict[str, str]:
    return {part.file.name: part.file.content.decode() for part in parts if part.file}


async def test_a_reply_of_usual_length_is_shown_whole() -> None:
    story = f"{'word ' * 99}\n\n" * 25
    for markdown in ("*Hi*", f"{PARAGRAPH}\n\n" * 6, story, "```py\nprint(1)\n```"):
        assert await parts_of(markdown) == render(markdown)


async def test_long_code_becomes_a_file_named_after_its_language() -> None:
    (part,) = await parts_of(f"Take this:\n\n```Python\n{CODE}\n```\n\nRun it.")
    assert part.text == "Take this:\n\n📎 code.py (300 рядків)\n\nRun it."
    assert files_of((part,)) == {"code.py": f"{CODE}\n"}


@pytest.mark.parametrize(
    ("info", "name"),
    [
        *[("", "code.txt"), ("python", "code.py"), ("C++ linenums", "code.cpp"), ("ts", "code.ts")],
        *[("exe", "code.txt"), ("../../x", "code.txt"), ("p\u202ey", "code.txt")],
    ],
)
async def test_an_unknown_language_gives_a_text_file(info: str, name: str) -> None:
    assert list(files_of(await parts_of(f"```{info}\n{CODE}\n```"))) == [name]


async def test_several_long_blocks_become_several_files_below_the_text() -> None:
    indented = CODE.replace("\n", "\n  ")
    markdown = f"{PARAGRAPH}\n\n- ~~~js\n  {indented}\n  ~~~\n\n```sql\n{CODE}\n```\n\n{PARAGRAPH}"
    text, *files = await parts_of(markdown)
    assert "📎 code.js" in text.text
    assert "📎 code-2.sql" in text.text
    assert files_of(tuple(files)) == {"code.js": f"{CODE}\n", "code-2.sql": f"{CODE}\n"}
    assert [part.text for part in files] == ["", ""]


async def test_a_reply_beyond_four_messages_comes_whole_in_one_file() -> None:
    markdown = f"{PARAGRAPH}\n\n" * 10
    (part,) = await parts_of(markdown)
    assert files_of((part,)) == {"answer.md": markdown}
    assert render(markdown)[0].text.startswith(part.text.removesuffix(f"\n\n{NOTE}"))
    assert part.entities


async def test_a_long_reply_without_formatting_is_a_text_file() -> None:
    prose = "Plain words and some more of them. " * 500
    assert files_of(await parts_of(prose)) == {"answer.txt": prose}


async def test_many_entities_count_as_length() -> None:
    assert list(files_of(await parts_of("*a* " * 2000))) == ["answer.md"]


async def test_text_beyond_the_bound_is_not_read() -> None:
    parts, is_whole = await reply_parts("x" * MAX_CHARS + "*y*" * 1_000_000, SAY)
    assert not is_whole
    assert files_of(parts) == {"answer.txt": "x" * MAX_CHARS}


async def test_odd_characters_neither_break_a_file_nor_its_caption() -> None:
    markdown = "\ud800 👩‍👩‍👧‍👦" * 3_000 + "\r\nx"
    (part,) = await parts_of(markdown)
    assert files_of((part,)) == {"answer.txt": clean(markdown)}


async def test_a_reply_too_slow_to_render_is_plain_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.reply.render._MAX_RENDER_S", 0)
    markdown = f"{PARAGRAPH}\n\n" * 6
    with capture_logs() as log:
        parts = await parts_of(markdown)
    assert parts == plain(markdown)
    assert len(parts) <= MAX_PARTS
    (warning,) = log
    assert (warning["log_level"], warning["chars"]) == ("warning", len(markdown))
    assert "bold" not in str(warning)
