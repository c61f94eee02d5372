"""What a person is asked about in JSON cannot pass for something else."""

import unicodedata

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.features.mcp.clear_json import clear_json

ACCENTS = st.characters(categories=["Mn", "Mc"]).filter(unicodedata.combining)


@given(
    st.text(
        st.sampled_from('aeÅ가ᄀ\u1161 \\n"') | ACCENTS | st.characters(exclude_categories=["Cs"])
    )
)
def test_json_that_writes_out_what_looks_alike_has_the_same_value(text: str) -> None:
    written = clear_json(orjson.dumps(text).decode())
    assert orjson.loads(written) == text
    assert unicodedata.is_normalized("NFC", written)
    assert "  " not in written


@pytest.mark.parametrize(
    "text",
    [
        "Зачем ёж? Её объём",
        "Python-разработчик",
        "https://ru.wikipedia.org/wiki/Россия",
        "нет\nда\\x",
        "Grüße, naïve café, Straße",
        "Γειά σου, Κόσμε",
        "क्षत्रिय, शक्‌ति, 한국어",
    ],
)
def test_ordinary_words_of_one_alphabet_are_not_written_out(text: str) -> None:
    assert clear_json(orjson.dumps(text).decode()) == orjson.dumps(text).decode()
