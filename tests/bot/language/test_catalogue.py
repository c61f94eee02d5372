"""Every language has the same sentences, and values in them are never markup."""

import re
import tomllib
from datetime import UTC, datetime
from decimal import Decimal
from html import unescape
from pathlib import Path
from string import Formatter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.commands.general import descriptions
from bot.commands.sentences import Sentences
from bot.language import catalogue
from bot.language.catalogue import Catalogue
from bot.reply.render import render
from memory.behaviors.knowledge_base import KnowledgeBase
from tests.bot.reply.telegram_rules import faults

CATALOGUE = Catalogue()
FOLDER = catalogue._FOLDER
ENGLISH = CATALOGUE._of("en")
LANGUAGES = CATALOGUE.languages
PLAIN_TABLES = ("commands.", "buttons.")
VALUE = "12_345 *a* <b>"
WAYS = ("way_voice", "way_photo", "way_file", "way_link")
NOT_SAID: dict[str, tuple[str, tuple[str, ...]]] = {
    "de": (r"\bErinnerung", ("reminders.", "edited.", "claims.", "commands.remind", "privacy.")),
    "en": (r"model('s)? provider|\badmins?\b", ()),
    "fr": (r" [;:?!»%]|« ", ()),
}


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(sentence) if name is not None}


def commands(sentence: str) -> set[str]:
    return {*re.findall(r"/[a-z_]+", sentence)}


def test_the_bot_speaks_eleven_languages() -> None:
    assert " ".join(LANGUAGES) == "de en es fa fr id it pt ru tr uk"


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_language_has_the_same_sentences(language: str) -> None:
    tables = tomllib.loads((FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
    keys = {f"{table}.{name}" for table, sentences in tables.items() for name in sentences}
    assert keys == ENGLISH.keys()
    assert len({*CATALOGUE.text(language, "dates.months").split()}) == 12
    said = [each for sentences in tables.values() for each in sentences.values()]
    assert [each for each in said if each != each.strip(" ")] == [], "these spaces would be lost"


def test_no_word_has_two_meanings_and_french_punctuation_never_begins_a_line() -> None:
    for language, (wrong, but) in NOT_SAID.items():
        for key, sentence in CATALOGUE._of(language).items():
            assert key.startswith(but) or not re.search(wrong, sentence), key


def test_a_number_has_the_plural_form_of_its_language() -> None:
    forms = {"en": "line lines lines lines lines", "tr": "satır satır satır satır satır"}
    forms |= {"fr": "ligne lignes lignes lignes lignes", "ru": "строка строки строк строк строка"}
    for language, words in forms.items():
        numbered = dict(zip((1, 2, 5, 11, 21), words.split(), strict=True))
        said = [CATALOGUE.text(language, "answer.lines", count=number) for number in numbered]
        assert said == [f"{number} {word}" for number, word in numbered.items()]


@pytest.mark.parametrize("language", LANGUAGES)
def test_topics_that_share_and_those_that_do_not_are_named_alike(language: str) -> None:
    (on,) = re.findall(r"\*\*(.+)\*\*", CATALOGUE.text(language, "topics.on"))
    off = CATALOGUE.text(language, "topics.off")
    assert [word for word in on.split() if word[:5] not in off] == []


def test_a_sentence_missing_in_a_language_is_said_in_english(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "en.toml").write_text('[commands]\nhelp = "Help"\nwho = "Who you are"\n')
    (tmp_path / "it.toml").write_text('[commands]\nhelp = "Aiuto"\n')
    (tmp_path / "xx.toml").write_text("not read, because nobody has spoken it")
    monkeypatch.setattr(catalogue, "_FOLDER", tmp_path)
    lacking = Catalogue()
    assert lacking.text("it", "commands.help") == "Aiuto"
    assert lacking.text("it", "commands.who") == "Who you are"


def test_a_date_is_written_as_people_of_the_language_write_it() -> None:
    days = {"en": "2 November 2026", "de": "2. November 2026", "es": "2 de noviembre de 2026"}
    days |= {"fa": "2 نوامبر 2026", "ru": "2 ноября 2026 года", "pt": "2 de novembro de 2026"}
    days |= {"uk": "2 листопада 2026", "sv": "2 November 2026"}
    at = datetime(2026, 11, 2, tzinfo=UTC).timestamp()
    assert {language: CATALOGUE.day(language, at) for language in days} == days


def test_a_fraction_and_a_time_are_written_as_people_of_the_language_write_them() -> None:
    plan = {"used_mb": 2.23, "limit_mb": 25.0, "percent": 9}
    for language, used in {"en": "2.2", "de": "2,2", "fa": "2.2"}.items():
        said = CATALOGUE.text(language, "admin.plan", **plan)
        assert re.findall(r"\d[\d.,]*", unescape(said)) == [used, "25", "9"]
    for cost, shown in {"0": "0,0000", "12.34567": "12,3457"}.items():
        said = CATALOGUE.text("de", "usage.cost", cost=Decimal(cost))
        assert unescape(said) == f"- Kosten: {shown}"
    said_at = Sentences(CATALOGUE).local("fa", 1_774_000_000, "Asia/Tehran")
    assert said_at["when"] == "20 مارس 2026، 13:16"


def test_a_persian_command_keeps_its_slash_on_the_left() -> None:
    for key, sentence in CATALOGUE._of("fa").items():
        assert re.findall(r"(?<![\u200e\w/])/[a-z_]+", sentence) == [], key


def test_every_field_of_the_running_state_has_a_label() -> None:
    """It ends with the colon, because a space stands before that in French."""
    for language in LANGUAGES:
        colon = "\u00a0:" if language == "fr" else ":"
        for field in KnowledgeBase.model_fields:
            assert CATALOGUE.text(language, f"state.{field}").endswith(colon)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sentence_has_the_same_placeholders_and_commands_in_every_language(language: str) -> None:
    for key, sentence in ENGLISH.items():
        translated = CATALOGUE._of(language)[key]
        assert placeholders(translated) == placeholders(sentence)
        assert commands(translated) == commands(sentence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_sentence_fits_one_message_and_shows_every_value_literally(language: str) -> None:
    for key, sentence in CATALOGUE._of(language).items():
        values = dict.fromkeys(placeholders(sentence), VALUE)
        (part,) = render(CATALOGUE.text(language, key, **values))
        assert faults(part) == []
        assert not {*"*`"} & {*part.text.replace(VALUE, "")}
        assert part.text.count(VALUE) == sentence.count("{")


@pytest.mark.parametrize("language", LANGUAGES)
def test_menus_and_buttons_are_short_plain_text_and_refusals_fit_their_popup(language: str) -> None:
    for key in ("clear.not_yours", "clear.expired"):
        assert len(CATALOGUE.text(language, key)) <= 200
    for key in ENGLISH:
        if key.startswith(PLAIN_TABLES):
            sentence = CATALOGUE.text(language, key)
            assert 1 <= len(sentence) <= 60
            assert not {*"*`_{}<>"} & {*sentence}


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_description_of_an_empty_chat_fits(language: str) -> None:
    shown = {each.language: each.text for each in descriptions(Sentences(CATALOGUE), WAYS)}
    text = shown["" if language == "en" else language]
    assert len(text) <= 512
    assert "&" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_welcome_fits_one_phone_screen(language: str) -> None:
    """Some 12 lines of 40 characters; it says what is stored where, and how to erase it."""
    hello = CATALOGUE.text(language, "start.private", name="Anna", bot="Ricordo")
    ways = ", ".join(CATALOGUE.text(language, f"start.{way}") for way in WAYS)
    how = CATALOGUE.text(language, "start.ways", ways=ways)
    welcome = f"{hello} {how} {CATALOGUE.text(language, 'start.try')}"
    assert len(welcome) <= 480
    assert commands(welcome) == {"/forget", "/privacy"}


def test_a_regional_code_finds_its_language_and_an_unknown_one_english() -> None:
    codes = {"de": "de de-AT DE_at", "pt": "pt-BR", "fa": "fa-IR", "en": "sv-SE"}
    for language, found in codes.items():
        said = {CATALOGUE.text(code, "new.done") for code in found.split()}
        assert said == {CATALOGUE.text(language, "new.done")}
    assert CATALOGUE.text("", "new.done") == ENGLISH["new.done"]


@given(st.text(st.characters(categories=["L", "N", "P", "S", "Zs"]), min_size=1).filter(str.strip))
def test_a_name_is_never_markup(name: str) -> None:
    (part,) = render(CATALOGUE.text("en", "start.private", name=name, bot="Ricordo"))
    assert part.text.startswith(f"Hi {' '.join(name.split())}! I'm Ricordo: ")
    assert [one.type for one in part.entities] == ["bold"]


def test_an_unknown_key_or_a_missing_value_is_an_error() -> None:
    assert "new.done" in CATALOGUE
    assert "new.done_so" not in CATALOGUE
    with pytest.raises(KeyError, match="done_so"):
        CATALOGUE.text("en", "new.done_so")
    with pytest.raises(KeyError, match="ttl_days"):
        CATALOGUE.text("en", "privacy.text")
