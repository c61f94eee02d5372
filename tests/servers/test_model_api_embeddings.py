"""Vectors of hashed words: texts that share rare words are close, all others are far apart."""

import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.playground.offline_embedder import DIMENSIONS, embed, words
from tests.servers.model_api import Dialect, ModelApiServer, Scripted
from tests.servers.model_api_client import client_of

UNRELATED = [
    "My sister's boat is called Ada.",
    "The dentist expects me on Tuesday at nine.",
    "I would like to learn how to bake sourdough.",
    "Yesterday it was raining and we stayed at home.",
    "What do you think about jazz?",
    "The deadline of our project moved to Friday.",
    "Мою собаку зовут Бублик.",
    "京都へ行きたいです。",
    "Meine Tante wohnt in Bremen.",
]
RELATED = [
    ("What is my sister's boat called?", "My sister's boat is called Ada."),
    ("When do I see the dentist?", "The dentist expects me on Tuesday at nine."),
    ("Do you still know what I wanted to bake?", "I would like to learn how to bake sourdough."),
    ("как зовут мою собаку?", "Мою собаку зовут Бублик."),
    ("京都へはいつ行きたいですか", "京都へ行きたいです。"),
    ("Wo wohnt meine Tante?", "Meine Tante wohnt in Bremen."),
]


def likeness(one: str, other: str) -> float:
    return float(embed(one) @ embed(other))


@pytest.mark.parametrize(("one", "other"), [*combinations(UNRELATED, 2)])
def test_unrelated_sentences_score_about_nothing(one: str, other: str) -> None:
    assert abs(likeness(one, other)) < 0.2


@pytest.mark.parametrize(("question", "answer"), RELATED)
def test_a_shared_rare_word_scores_clearly_above(question: str, answer: str) -> None:
    others = [likeness(question, text) for text in UNRELATED if text != answer]
    assert likeness(question, answer) > max(0.3, 2 * max(others))


def test_texts_that_share_only_stop_words_are_not_alike() -> None:
    assert (
        likeness("What is it that you have about boats", "What is it that you have on jazz") < 0.2
    )


@given(st.text(max_size=200))
def test_a_vector_has_length_one_unless_the_text_has_no_word(text: str) -> None:
    vector = embed(text)
    assert vector.shape == (DIMENSIONS,)
    assert vector.dtype == np.float32
    length = float(np.linalg.norm(vector))
    assert length == pytest.approx(1 if words(text) else 0, abs=1e-5)


def test_another_process_gives_the_same_vector() -> None:
    code = (
        "from bot.playground.offline_embedder import embed;"
        "print(embed('The boat of Ünal').tobytes().hex())"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == embed("The boat of Ünal").tobytes().hex()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't STOP, Café!", ["don", "t", "stop", "café"]),
        ("Straße ﬁt 42", ["strasse", "fit", "42"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("東京タワー is 高い", ["東京", "京タ", "タワ", "ワー", "is", "高い"]),
        ("猫", ["猫"]),
        ("… 🙂 !", []),
    ],
)
def test_words_are_folded_and_unspaced_scripts_cut_in_pairs(text: str, expected: list[str]) -> None:
    assert words(text) == expected


async def test_floats_and_base64_are_the_same_vectors_in_order() -> None:
    async with ModelApiServer(Scripted()) as server, client_of(server) as client:
        packed = await client.embeddings.create(model="e", input=["boat", "jazz"])
        plain = await client.embeddings.create(
            model="e", input=["boat", "jazz"], encoding_format="float"
        )
    for answer in (packed, plain):
        got = np.array([vector.embedding for vector in answer.data], dtype=np.float32)
        assert np.array_equal(got, np.stack([embed("boat"), embed("jazz")]))


@pytest.mark.parametrize(("honours", "length"), [(True, 64), (False, 512)])
async def test_a_server_may_ignore_the_dimensions_asked_for(honours: bool, length: int) -> None:  # noqa: FBT001 - a case, not a switch
    dialect = Dialect(dimensions=512, honours_dimensions=honours)
    async with ModelApiServer(Scripted(), dialect=dialect) as server, client_of(server) as client:
        asked = await client.embeddings.create(model="e", input="boat", dimensions=64)
        default = await client.embeddings.create(model="e", input="boat")
    assert (len(asked.data[0].embedding), len(default.data[0].embedding)) == (length, 512)
    assert np.linalg.norm(asked.data[0].embedding) == pytest.approx(1)
