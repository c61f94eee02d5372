"""Texts become unit rows of one length, whatever the server does with the request."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.model.embedder import OpenAIEmbedder
from bot.model.openai_client import ModelClient
from memory.search.embeddings import EmbeddingsUnavailable
from tests.servers.model_api import (
    ApiError,
    Break,
    Dialect,
    EmbeddingsRequest,
    ModelApiServer,
    is_embeddings,
    rate_limited,
)

TEXTS = ["the red boat", "a green field", "seven blue birds"]


def embedder_of(
    client: ModelClient, dimensions: int | None = None, timeout_s: float = 10
) -> OpenAIEmbedder:
    return OpenAIEmbedder(client, "embed-test", dimensions, timeout_s)


def asked(server: ModelApiServer) -> list[EmbeddingsRequest]:
    asked = (call.request for call in server.log.calls)
    return [each for each in asked if isinstance(each, EmbeddingsRequest)]


async def test_each_text_gets_a_unit_row_at_its_position(client: ModelClient) -> None:
    rows = await embedder_of(client).embed(TEXTS)
    alone = [await embedder_of(client).embed([text]) for text in TEXTS]
    assert rows.dtype == np.float32
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert np.allclose(rows, np.concatenate(alone), atol=1e-6)


async def test_a_blank_text_is_a_row_of_zeros_and_is_not_sent(
    client: ModelClient, server: ModelApiServer
) -> None:
    rows = await embedder_of(client).embed(["", TEXTS[0], " \n\t"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([0, 1, 0], abs=1e-5)
    with pytest.raises(EmbeddingsUnavailable):
        await embedder_of(client).embed(["", " "])
    assert server.log.embedded == [TEXTS[0]]
    assert len(server.log.calls) == 1


async def test_a_lone_surrogate_is_replaced_before_it_is_sent(
    client: ModelClient, server: ModelApiServer
) -> None:
    await embedder_of(client).embed(["half an \ud83d emoji"])
    assert server.log.embedded == ["half an ? emoji"]


@pytest.mark.parametrize("letter", ["a", "я", "語", "😀"])
async def test_a_long_text_is_cut_to_a_length_that_models_take_in_any_script(
    client: ModelClient, server: ModelApiServer, letter: str
) -> None:
    """In the worst case each byte is a token."""
    server.dialect = Dialect(count_tokens=lambda text: len(text.encode()))
    await embedder_of(client).embed([letter * 50_000])
    assert server.log.refusals == []
    assert set(server.log.embedded[0]) == {letter}


async def test_texts_go_in_ordered_batches(client: ModelClient, server: ModelApiServer) -> None:
    texts = [f"word{number}" for number in range(300)]
    rows = await embedder_of(client).embed(texts)
    assert [len(request.texts) for request in asked(server)] == [32, 256, 12]
    assert server.log.embedded == texts
    assert np.allclose(rows[299], (await embedder_of(client).embed(["word299"]))[0], atol=1e-6)


@given(st.lists(st.tuples(st.text(min_size=1, max_size=9), st.integers(1, 2000)), min_size=1))
def test_batches_hold_all_in_order_and_are_never_too_big(repeated: list[tuple[str, int]]) -> None:
    texts = [text * times for text, times in repeated]
    batches = list(OpenAIEmbedder(None, "m", None, 1)._batches(texts))  # type: ignore[arg-type]
    assert [text for batch in batches for text in batch] == texts
    assert all(batches)
    assert max(sum(len(text.encode()) for text in batch) for batch in batches) <= 250_000


# Dimensions


async def test_dimensions_are_sent_only_if_they_are_set_and_stand_in_the_fingerprint(
    client: ModelClient, server: ModelApiServer
) -> None:
    plain, short = embedder_of(client), embedder_of(client, 64)
    assert (await plain.embed(TEXTS)).shape == (3, server.dialect.dimensions)
    assert (await short.embed(TEXTS)).shape == (3, 64)
    assert ["dimensions" in request.raw for request in asked(server)] == [False, True]
    assert (plain.fingerprint, short.fingerprint) == ("embed-test:default", "embed-test:64")


async def test_the_rows_of_a_server_that_ignores_dimensions_are_cut_to_unit_rows(
    client: ModelClient, server: ModelApiServer
) -> None:
    server.dialect = Dialect(honours_dimensions=False)
    rows = await embedder_of(client, 64).embed(TEXTS)
    assert rows.shape == (3, 64)
    assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)


async def test_a_server_that_refuses_dimensions_is_asked_without_from_then_on(
    client: ModelClient, server: ModelApiServer
) -> None:
    server.dialect = Dialect(unsupported=frozenset({"dimensions"}))
    embedder = embedder_of(client, 64)
    for _ in range(2):
        assert (await embedder.embed(TEXTS)).shape == (3, 64)
    assert len(server.log.refusals) == 1


async def test_too_few_dimensions_are_refused(client: ModelClient, server: ModelApiServer) -> None:
    server.dialect = Dialect(honours_dimensions=False, dimensions=32)
    with pytest.raises(EmbeddingsUnavailable, match="32 dimensions, 64 asked for"):
        await embedder_of(client, 64).embed(TEXTS)


# Trouble


@pytest.mark.parametrize(
    "fault",
    [Break.HTML, Break.HANG, rate_limited(0.01), ApiError(400, "No."), ApiError(401, "No.")],
    ids=["html", "silence", "429", "400", "401"],
)
async def test_any_failure_means_that_embeddings_are_unavailable(
    client: ModelClient, server: ModelApiServer, fault: Break | ApiError
) -> None:
    server.faults.add(fault, times=None, when=is_embeddings)
    with pytest.raises(EmbeddingsUnavailable):
        await embedder_of(client, 64, timeout_s=0.2 if fault is Break.HANG else 10).embed(TEXTS)
