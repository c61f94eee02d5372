"""An export is read within bounds of time and memory, whatever it unpacks to."""

import json

import pytest

from bot.features.imports.selection import READER
from bot.parsing.answers import NotRead
from bot.parsing.processes import parse
from tests.bot.parsing.exports import chatgpt, claude, gemini, zipped
from tests.hostile.untrusted_files import export_of

_MAX_MESSAGES = 60_000


async def test_many_short_messages_are_counted_and_the_newest_talks_win() -> None:
    answer = await parse(READER, export_of(60, 2_000, "a").content)
    messages = sum(len(talk["messages"]) for talk in answer["talks"])
    assert _MAX_MESSAGES - 2_000 <= messages <= _MAX_MESSAGES
    assert len(answer["talks"]) + answer["beyond"] == 60
    times = [talk["at"] for talk in answer["talks"]]
    assert times == sorted(times, reverse=True)


async def test_a_real_export_of_50_mb_is_imported() -> None:
    answer = await parse(READER, export_of(640, 60, "Where is the boat? äöü " * 34).content)
    assert len(answer["talks"]) > 80
    assert len(answer["talks"]) + answer["beyond"] == 640


@pytest.mark.parametrize("blanks", [1, 2**20 - 5, 2**20 + 3])
async def test_a_talk_may_stand_anywhere_in_its_file(blanks: int) -> None:
    before, after = chatgpt(("Boats", "Where?", "In Oulu."), ("Späť", "When?", "In May."))
    parts = [json.dumps(each, ensure_ascii=False).encode() for each in (before, after)]
    content = b"[" + parts[0] + b" " * blanks + b"," + parts[1] + b"]"
    answer = await parse(READER, content)
    assert [talk["title"] for talk in answer["talks"]] == ["Späť", "Boats"]
    for cut in (1, len(parts[1]) // 2):
        with pytest.raises(NotRead, match="damaged"):
            await parse(READER, content[:-cut])


async def test_numbers_and_other_elements_are_passed_over() -> None:
    talk = json.dumps(claude("Boats", "Where?", "In Oulu.")[0]).encode()
    content = b"[" + b"12," * 400_000 + talk + b', 7, "x"]'
    answer = await parse(READER, content)
    assert [each["title"] for each in answer["talks"]] == ["Boats"]


GEMINI = gemini(
    ("Prompted And in winter?", "<p>Ice, <b>Tom &amp; Jerry</b>.</p>", "2025-06-02T09:05:00.100Z"),
    ("Gave feedback: Good response", "", "2025-06-02T09:04:00Z"),
    ("Prompted Where is Oulu?", "<p>In Finland.</p>", "2025-06-02T09:00:00.000Z"),
    ("Eingabe: Wo liegt Graz?", "<p>In der Steiermark.</p>", "2025-06-01T09:00:00Z"),
)


ZIPPED = zipped(GEMINI, "Takeout/My Activity/Gemini Apps/MyActivity.json")


@pytest.mark.parametrize("content", [json.dumps(GEMINI).encode(), ZIPPED], ids=("json", "zip"))
async def test_what_was_asked_of_gemini_becomes_talks_between_pauses(content: bytes) -> None:
    answer = await parse(READER, content)
    assert answer["source"] == "Gemini"
    said = [[text for _, text, _ in talk["messages"]] for talk in answer["talks"]]
    roles = [[role for role, *_ in talk["messages"]] for talk in answer["talks"]]
    assert roles == [["user", "assistant"] * 2, ["user", "assistant"]]
    assert said == [
        ["Where is Oulu?", "In Finland.", "And in winter?", "Ice, Tom & Jerry ."],
        ["Eingabe: Wo liegt Graz?", "In der Steiermark."],
    ]


async def test_a_talk_with_gemini_without_a_pause_is_bounded_like_any_other() -> None:
    endless = gemini(*[("Prompted Hello", "<" * 9_000, "2025-06-02T09:00:00Z")] * 5_000)
    talks = (await parse(READER, json.dumps(endless).encode()))["talks"]
    assert [len(talk["messages"]) for talk in talks] == [2_000] * 5
    assert max(len(text) for _, text, _ in talks[0]["messages"]) <= 601
