"""What the check finds out about the embedding model, and what its vectors add to words."""

from argparse import Namespace
from collections.abc import Sequence

import numpy as np
import pytest

from bot.features.check import command_line
from bot.features.check.embeddings import COMPARISON, check_embeddings, native_row
from bot.probe import Row
from memory.memory import Memory
from memory.message import Message
from memory.scopes.log import stored_fields
from memory.search.embeddings import Vectors
from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.lab.recall import exchanges
from tests.memory.conftest import memory_of
from tests.servers.model_api import (
    ApiError,
    Break,
    Dialect,
    ModelApiServer,
    is_embeddings,
    server_error,
)
from tests.servers.model_api.faults import Fault
from tests.valkey import ValkeyServer

HONEST = Dialect(dimensions=256)
STUBBORN = Dialect(dimensions=256, honours_dimensions=False)
OWN_KEY = {"openai_embedding_api_key": "own"}


async def test_without_an_embedding_model_no_server_is_called(settings_of: SettingsOf) -> None:
    [row] = (await rows_of(check_embeddings(settings_of(openai_embedding_model="off")))).values()
    assert (row.verdict, row.seen) == ("ok", "off: recall uses words alone")


@pytest.mark.parametrize(
    ("dialect", "asked", "verdict", "seen"),
    [
        (HONEST, None, "ok", "hashed: 256 dimensions"),
        (HONEST, 64, "ok", "hashed: 64 dimensions, as set (the model's own: 256)"),
        (STUBBORN, 64, "ok", "hashed: 64 dimensions, as set (the model's own: 256)"),
        (STUBBORN, 512, "fail", "hashed has 256 dimensions, but 512 are set"),
    ],
)
async def test_dimensions_are_compared_with_the_setting(
    settings_of: SettingsOf,
    model_api: ModelApiServer,
    dialect: Dialect,
    asked: int | None,
    verdict: str,
    seen: str,
) -> None:
    model_api.dialect = dialect
    settings = settings_of(
        openai_base_url=model_api.base_url,
        openai_embedding_model="hashed",
        openai_embedding_dimensions=asked,
    )
    [row] = (await rows_of(check_embeddings(settings))).values()
    assert (row.verdict, row.seen) == (verdict, seen)


@pytest.mark.parametrize(
    ("fault", "own", "advice"),
    [
        (ApiError(401, "Incorrect key"), {}, "check OPENAI_API_KEY"),
        (ApiError(401, "Incorrect key"), OWN_KEY, "check OPENAI_EMBEDDING_API_KEY"),
        (Break.HTML, {}, "check OPENAI_BASE_URL, which usually ends in /v1"),
        (
            server_error(),
            {},
            "try again, or check OPENAI_EMBEDDING_MODEL and OPENAI_EMBEDDING_BASE_URL",
        ),
    ],
)
async def test_a_server_without_embeddings_fails_and_the_advice_names_the_settings(
    settings_of: SettingsOf,
    model_api: ModelApiServer,
    fault: Fault,
    own: dict[str, str],
    advice: str,
) -> None:
    model_api.faults.add(fault, times=None, when=is_embeddings)
    settings = settings_of(openai_base_url=model_api.base_url, **own)
    [row] = (await rows_of(check_embeddings(settings))).values()
    assert (row.verdict, row.advice) == (
        "fail",
        f"{advice}, or do without: OPENAI_EMBEDDING_MODEL=off",
    )


def test_many_dimensions_lead_to_the_advice_to_ask_for_fewer() -> None:
    advice = "OPENAI_EMBEDDING_DIMENSIONS=512 needs 3 times less memory"
    assert native_row("text-embedding-3-small", 1536).advice == advice
    assert native_row("any", 384).advice == ""


COLORS = ("red", "green", "blue", "white", "black", "amber", "ivory", "olive")
THINGS = ("boat", "lamp", "chair", "clock", "plate", "spoon", "brick", "glove")
SESSIONS = 64
FEW = 25


class Embedder:
    """Gives the messages of a session one vector, or each message its own."""

    fingerprint = "meaning:default"

    def __init__(self, *, by_meaning: bool) -> None:
        self._by_meaning = by_meaning

    async def embed(self, texts: Sequence[str]) -> Vectors:
        rows = np.eye(4 * SESSIONS, dtype=np.float32)
        numbers = [int(each.rpartition(" ")[2].strip("a")) for each in texts]
        firsts = ["where" in each for each in texts]
        own = [2 * n + is_first for n, is_first in zip(numbers, firsts, strict=True)]
        return rows[numbers if self._by_meaning else own]


async def talk(memory: Memory, sessions: int) -> None:
    """Store two messages a session; every other second one repeats words of the first one."""
    here, said = Scope.of_chat(7), list[Message]()
    for number in range(sessions):
        at = 100_000.0 * (number + 1)
        pair = f"{COLORS[number % 8]} {THINGS[number // 8]}"
        asked = f"where did somebody leave the secret {pair} {number}"
        told = f"it was beside our {pair} {number}" if number % 2 else f"nobody knows a{number}"
        for text in (asked, told):
            said.append(Message(0, 0, "user", text, at, 7, "Ann"))
            said.append(Message(0, 0, "assistant", f"Well {number}", at))
    request = {"epoch": "0", "erasure": "0", "ttl_s": 9_999}
    for each in exchanges(said):
        messages = [stored_fields(part) for part in each]
        await memory.store.run("append", here, {**request, "messages": messages})
    await memory.client.call("ZADD", memory.keys.index_of(here), 1, here.tag)
    await memory.learn(here)


async def compared(store: RedisClient, embedder: Embedder, n: int) -> None:
    await talk(memory_of(store, embedder), n)


async def row(settings: object, store: RedisClient) -> Row:
    [found] = [each async for each in COMPARISON.run(settings, store, Keys(42))]
    return found


@pytest.mark.parametrize(
    ("by_meaning", "verdict", "advice"),
    [(True, "ok", ""), (False, "warn", "words alone find about as much here")],
)
async def test_vectors_are_compared_with_words_alone(
    store: RedisClient,
    settings_of: SettingsOf,
    by_meaning: bool,  # noqa: FBT001 - a parameter of the test
    verdict: str,
    advice: str,
) -> None:
    await compared(store, Embedder(by_meaning=by_meaning), SESSIONS)
    found = await row(settings_of(openai_embedding_model="meaning"), store)
    assert (found.verdict, found.advice[: len(advice)]) == (verdict, advice)
    assert found.seen.startswith(f"of {SESSIONS * 3 // 2} messages of 1 conversations")
    assert ("by vectors for 100 %, by both for 100 %" in found.seen) == by_meaning
    assert "secret" not in f"{found}"


async def test_few_messages_and_vectors_of_another_model_say_nothing(
    store: RedisClient, settings_of: SettingsOf
) -> None:
    await compared(store, Embedder(by_meaning=True), FEW)
    for name in ("meaning", "another"):
        found = await row(settings_of(openai_embedding_model=name), store)
        assert (found.verdict, found.seen) == (
            "unknown",
            "no conversation has 60 messages of people with vectors of this model",
        )
    off = await row(settings_of(openai_embedding_model="off"), store)
    assert (off.verdict, off.seen) == ("ok", "OPENAI_EMBEDDING_MODEL=off: recall uses words alone")


def test_the_command_shows_redis_and_the_comparison_and_asks_nobody_else(
    own_server: ValkeyServer,
    settings_of: SettingsOf,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The logs of the other tests stay as they are.
    monkeypatch.setattr(command_line, "configure_logs", lambda *_: None)
    settings = settings_of(telegram_bot_token="42:secret", redis_url=own_server.url)
    assert command_line.run_check(settings, Namespace(release=False, compare_embeddings=True)) == 0
    shown = capsys.readouterr().out
    assert "Words and vectors" in shown
    assert "Telegram" not in shown
    assert "Model" not in shown
