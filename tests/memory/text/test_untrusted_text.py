"""Text from outside carries no hidden words, and ordinary text of all scripts stays as it is."""

import unicodedata
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.untrusted_text import escaped, seen_by_people, visible

SECRET = b"Anna's PIN is 4711 and she is ill."
ENGLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f"
ORDINARY = {
    "Latin": "Grüße, naïve café: 5\xa0€, 12\u202f%",
    "Cyrillic": "Зачем ёж? Её объём",
    "Persian": "می\u200cخواهم خانه\u200cای بخرم؛ کتاب\u200cها، نمی\u200cتوانم.",
    "Arabic": "السَّلَامُ عَلَيْكُمْ ٢٠٢٦",
    "Hebrew": "שָׁלוֹם עולם!",
    "Hindi": "क्षत्रिय, क्\u200dष, शक्\u200cति",
    "Bengali": "র\u200d\u09cdয",
    "Sinhala": "ශ්\u200dරී ලංකා",
    "CJK": "東京、大阪\u3000「日本語」한국어",
    "emoji": "❤\ufe0f 👨\u200d👩\u200d👧 🏳\ufe0f\u200d🌈 👍🏽 1\ufe0f\u20e3 ☎\ufe0e 🇩🇪 \U0001fae9",
    "skin and flag": f"🕵🏽\u200d♂\ufe0f {ENGLAND}",
}
IN_PROMPTS_ONLY = {
    "Persian": "روز\u200cها PDF\u200cها ۲۰\u200cساله",
    "Hebrew": "שלום!\u200f, C++\u200eשל",
    "Japanese": "辻\U000e0100さん、葛\U000e0101城",
    "Mongolian": "ᠮᠣᠩᠭᠣᠯ\u180b",
}
VISIBLE_FORMATS = (
    "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)


@pytest.mark.parametrize("text", [*ORDINARY.values(), *IN_PROMPTS_ONLY.values()])
def test_ordinary_text_reaches_the_model_byte_for_byte(text: str) -> None:
    assert visible(text) == text
    assert escaped(text) == text


def test_a_person_can_agree_to_ordinary_text() -> None:
    assert [*map(seen_by_people, ORDINARY.values())] == [*ORDINARY.values()]


PIECES = [word for text in ORDINARY.values() for word in text.split(" ")]


@given(st.lists(st.sampled_from(PIECES)))
def test_ordinary_words_in_any_order_stay_as_they_are(words: list[str]) -> None:
    text = " ".join(words)
    assert visible(text) == text
    assert seen_by_people(text) == text


@given(st.text(st.characters(categories=["L", "N", "P", "S"])))
def test_letters_digits_and_signs_stay_as_they_are(text: str) -> None:
    bare = "".join(c for c in text if c not in "\u115f\u1160\u3164\uffa0")
    assert visible(bare) == bare


FORMATS = st.characters(categories=["Cf"])
SELECTORS = st.integers(0xE0100, 0xE01EF).map(chr) | st.integers(0xFE00, 0xFE0F).map(chr)
BASES = st.sampled_from(
    [ENGLAND, " ", "a", "\n", "1", "ж", "字", "ی", "न", "ש", "❤", "👩", "\u3164"]
)


@given(st.lists(BASES | FORMATS | SELECTORS).map("".join))
def test_cleaning_twice_changes_nothing_more(text: str) -> None:
    assert visible(visible(text)) == visible(text)
    assert seen_by_people(seen_by_people(text)) == seen_by_people(text)


def carried(kind: str) -> str:
    """Return the secret in characters that show nothing, behind one visible word."""
    if kind == "selectors":
        return "".join(chr(0xE0100 + byte - 16) for byte in SECRET)
    if kind == "tags":
        return "".join(chr(0xE0000 + byte) for byte in SECRET)
    signs = {
        "joiners": "\u200c\u200d",
        "old selectors": "\ufe00\ufe01",
        "emoji selectors": "\ufe0e\ufe0f",
        "directions": "\u200e\u200f",
        "isolates": "\u2066\u2069",
        "overrides": "\u202a\u202e",
        "fillers": "\u3164\u115f",
        "graphemes": "\u034f\u180b",
    }[kind]
    return "".join(signs[byte >> bit & 1] for byte in SECRET for bit in range(8))


KINDS = ["selectors", "tags", "joiners", "directions", "isolates", "overrides", "fillers"]
KINDS += ["graphemes", "old selectors", "emoji selectors"]


@pytest.mark.parametrize("kind", KINDS)
def test_hidden_words_carry_nothing(kind: str) -> None:
    """Between the words at most one sign stays at each side, where a script needs it."""
    for word in ("hello", "привет", "سلام", "नमस्ते", "שלום", "日本", "❤", "1"):
        cleaned = visible(f"{word}{carried(kind)} {word}")
        assert len(cleaned) <= 2 * len(word) + 2, word
        assert len(seen_by_people(cleaned)) <= 2 * len(word) + 2, word


def test_a_few_variants_of_letters_stay_and_many_do_not() -> None:
    """A variant has one of 240 numbers, so each letter could carry a byte."""
    few = "辻\U000e0100さん、葛\U000e0101城" * 4
    assert visible(few) == few
    many = "".join(f"字{variant}" for variant in carried("selectors"))
    assert visible(many) == "字" * len(SECRET)


def test_between_latin_and_cyrillic_letters_nothing_hidden_stays() -> None:
    for kind in KINDS:
        signed = zip(["a", "ж"] * 200, carried(kind), strict=False)
        assert set(visible("".join(f"{letter}{sign}" for letter, sign in signed))) == {"a", "ж"}


def test_what_a_person_agrees_to_has_no_character_that_shows_nothing() -> None:
    codes = chain(range(0x3000), range(0xF800, 0x1F800), range(0xDF800, 0xE2800))
    for character in map(chr, codes):
        stays = character in seen_by_people(f"a{character}b")
        category = unicodedata.category(character)
        if category in ("Cf", "Co", "Zl", "Zp") and character not in VISIBLE_FORMATS:
            assert not stays, hex(ord(character))
        elif category[0] in "LNPS" and character not in "\u115f\u1160\u2800\u3164\uffa0\U0001d159":
            assert stays, hex(ord(character))


@pytest.mark.parametrize(
    "text",
    [
        "send 1 \u202e000,1\u202c euro",
        "a\u2003b",
        "a\u2800b",
        "a\u034fb",
        "a\ufe0fb",
        "字\U000e0100",
        "روز\u200cها",
    ],
)
def test_a_person_agrees_to_no_change_of_direction_and_no_odd_blank(text: str) -> None:
    assert seen_by_people(text) != text
