"""`python -m bot check` as an operator or a platform runs it: a table and an exit status."""

import asyncio
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from pydantic import ValidationError

import config.settings
from bot.features import all_settings
from bot.features.check.command_line import (
    all_probes,
    bounded,
    check_settings,
    next_steps,
    table,
)
from bot.operator_classes import UnusableClass
from bot.probe import Row, Rows
from memory.store.embedded import EmbeddedValkey
from memory.store.keys import Keys
from tests.acceptance.bot_process import run_command
from tests.bot.features.conftest import SettingsOf, rows_of
from tests.servers.bot_api import BotApiServer
from tests.servers.model_api import ModelApiServer
from tests.settings import Settings
from tests.valkey import ValkeyServer, free_port

pytestmark = pytest.mark.usefixtures("launcher")

KEY = "sk-secret-of-the-operator"
FINE = Row("Fine", "ok", "as it should be")


@dataclass(frozen=True, slots=True)
class Ran:
    status: int
    output: str

    @property
    def failed(self) -> list[str]:
        """The names of the failed rows, in the order of the table."""
        lines = self.output.splitlines()
        return [line[9:].split("  ")[0] for line in lines if line.startswith("FAIL")]


@pytest.fixture
def environment(
    valkey: str, telegram: BotApiServer, model_api: ModelApiServer, tmp_path: Path
) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TELEGRAM_BOT_TOKEN": telegram.token,
        "TELEGRAM_API_URL": telegram.url,
        "OPENAI_API_KEY": KEY,
        "OPENAI_BASE_URL": model_api.base_url,
        "REDIS_URL": valkey,
    }


async def test_the_status_is_0_if_nothing_failed(environment: dict[str, str]) -> None:
    ran = await _check(environment, from_scratch=True)
    assert (ran.status, ran.failed) == (0, [])
    *_, summary, _, next_, start, _, _ = ran.output.splitlines()
    assert summary == "23 ok, 3 warn, 0 failed"  # open to all, nothing kept
    assert (next_, start) == ("Next:", "1. start the bot, and write /start to it")


async def test_the_status_is_1_if_something_failed_and_no_secret_is_shown(
    environment: dict[str, str], model_api: ModelApiServer
) -> None:
    model_api.dialect = type(model_api.dialect)(api_key="another key")
    environment |= {
        "TELEGRAM_BOT_TOKEN": "123456:wrong-secret",
        "REDIS_URL": f"redis://anna:hunter2@127.0.0.1:{free_port()}",
    }
    ran = await _check(environment)
    assert (ran.status, ran.failed) == (1, ["Redis", "Telegram", "Model stream", "Embeddings"])
    for secret in (KEY, "wrong-secret", "hunter2", "Traceback"):
        assert secret not in ran.output


async def test_a_release_calls_no_model_and_checks_only_the_token_at_telegram(
    environment: dict[str, str], telegram: BotApiServer, model_api: ModelApiServer
) -> None:
    ran = await _check(environment, "--release")
    assert (ran.status, model_api.log.calls) == (0, [])
    assert [call.method for call in telegram.calls] == ["getMe"]


@pytest.mark.parametrize(
    ("changed", "failed"),
    [
        ({"TELEGRAM_BOT_TOKEN": "123456:wrong-secret"}, ["Telegram"]),
        ({"TELEGRAM_BOT_TOKEN": "", "DYNO": "release.1"}, ["Bot token"]),
        ({"SYSTEM_PROMPT_FILE": sys.executable}, ["System prompt"]),  # it is too large
        ({"REDIS_URL": "", "DATA_DIR": "/dev/null/data"}, ["Redis"]),
        ({"REDIS_URL": "", "DATA_DIR": "/dev/null/data", "DYNO": "release.1"}, []),  # has no disk
    ],
)
async def test_a_release_fails_if_the_bot_could_not_start_on_its_machine(
    environment: dict[str, str], changed: dict[str, str], failed: list[str]
) -> None:
    ran = await _check(environment | changed, "--release")
    assert (ran.status, ran.failed) == (len(failed), failed)


async def test_a_release_fails_if_redis_has_other_data_or_runs_no_scripts(
    environment: dict[str, str], own_server: ValkeyServer, telegram: BotApiServer
) -> None:
    environment["REDIS_URL"], layout = own_server.url, Keys(telegram.bot.id).layout
    for wrong in (f"SET {layout} 99", f"DEL {layout}\r\nACL SETUSER default -eval"):
        own_server.ask(wrong)
        assert (await _check(environment, "--release")).failed == ["Stored data"]


async def test_without_a_url_the_embedded_server_is_checked(environment: dict[str, str]) -> None:
    ran = await _check(environment | {"REDIS_URL": ""}, "--release")
    assert (ran.status, ran.failed) == (0, [])
    assert "append-only file: a crash loses about a second" in ran.output


async def test_an_embedded_server_that_a_bot_uses_is_not_a_failure(
    environment: dict[str, str], tmp_path: Path
) -> None:
    running = EmbeddedValkey(tmp_path / "data")
    running.start()
    try:
        changed = {"REDIS_URL": "", "DATA_DIR": str(tmp_path / "data")}
        ran = await _check(environment | changed, "--release")
    finally:
        running.stop()
    assert (ran.status, ran.failed) == (0, [])
    assert f"another process is using {tmp_path}" in ran.output


async def test_a_group_that_takes_too_long_keeps_the_rows_it_found() -> None:
    async def stuck() -> Rows:
        yield FINE
        await asyncio.Event().wait()

    late = Row("Group", "fail", "not finished within 0.05 s", "try again")
    assert await bounded("Group", stuck(), limit_s=0.05) == [FINE, late]


async def test_a_group_that_raises_keeps_its_rows_and_shows_no_secret() -> None:
    async def broken() -> Rows:
        yield FINE
        raise ValueError(KEY)

    found = await bounded("Group", broken())
    assert [row.verdict for row in found] == ["ok", "fail"]
    assert KEY not in repr(found)


async def _check(environment: dict[str, str], *options: str, from_scratch: bool = False) -> Ran:
    return Ran(*await run_command(environment, "check", *options, from_scratch=from_scratch))


ROWS = [
    Row("Redis", "ok", "Valkey 9.1.2"),
    Row("Redis eviction", "fail", "maxmemory-policy is allkeys-lru", "set it to noeviction"),
    Row("Redis memory", "unknown", "not reported"),
    Row("Telegram", "warn", "not reached"),
]


def test_a_row_is_a_line_its_advice_is_another_and_the_last_line_is_a_summary() -> None:
    assert table(ROWS).splitlines() == [
        "ok       Redis           Valkey 9.1.2",
        "FAIL     Redis eviction  maxmemory-policy is allkeys-lru",
        "                         -> set it to noeviction",
        "unknown  Redis memory    not reported",
        "warn     Telegram        not reached",
        "",
        "1 ok, 1 warn, 1 unknown, 1 failed",
    ]


def test_it_ends_with_the_three_most_useful_steps() -> None:
    offered = Row("Inspector", "ok", "off", "set a token")
    price = Row("Backup", "warn", "none", "make one")
    more = [Row("Telegram", "ok", "the token belongs to @b"), offered, offered, price]
    assert next_steps([*more, ROWS[1]]).splitlines() == [
        "Next:",
        "1. Redis eviction: set it to noeviction",
        "2. Backup: make one",
        "3. Inspector: set a token",
    ]
    assert next_steps(more).splitlines()[1:] == [
        "1. start the bot, and write /start to it",
        "2. Backup: make one",
        "3. Inspector: set a token",
    ]
    assert next_steps(ROWS[2:3]) == "Nothing is left to do."
    misspelt = Row("Settings", "warn", "KEI has no effect", "rename KEI")
    assert next_steps([*more, ROWS[1], misspelt]).splitlines()[1] == "1. Settings: rename KEI"


OPENAI, LOCAL = "https://api.openai.com/v1", "http://127.0.0.1:9/v1"


@pytest.mark.parametrize(
    ("values", "what", "advice"),
    [
        ({"openai_base_url": OPENAI}, "Model key", "set OPENAI_API_KEY"),
        (
            {"openai_base_url": LOCAL, "openai_embedding_base_url": OPENAI},
            "Embedding key",
            "set OPENAI_EMBEDDING_API_KEY, or OPENAI_EMBEDDING_MODEL=off",
        ),
        (
            {"openai_base_url": LOCAL, "fallback_model": "m", "fallback_base_url": OPENAI},
            "Second model key",
            "set FALLBACK_API_KEY",
        ),
    ],
)
async def test_a_missing_key_is_a_failed_row(
    settings_of: SettingsOf, values: dict[str, str], what: str, advice: str
) -> None:
    rows = await rows_of(check_settings(settings_of(**values)))
    failed = [row for row in rows.values() if row.verdict == "fail"]
    assert failed == [Row(what, "fail", "not set", advice)]


class Selecting:
    def select(self, messages: object) -> object:
        return messages


@pytest.mark.parametrize(("name", "verdict"), [("Selecting", "ok"), ("Missing", "fail")])
async def test_a_feature_or_behavior_that_is_missing_is_a_failure(name: str, verdict: str) -> None:
    path = f"{__name__}:{name}"
    rows = check_settings(Settings(features=(path,), behaviors=(f"{path}@private",)))
    found = {row.what: row.verdict async for row in rows if row.what in ("Features", "Behaviors")}
    assert found == {"Features": verdict, "Behaviors": verdict}


class Again(config.settings.Settings):
    port: int = 1


def test_unusable_settings_or_probes_of_a_feature_are_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for read, name, value, why in (
        (all_settings, "SETTINGS", {}, "outside:SETTINGS must be a subclass of `Settings`"),
        (all_settings, "SETTINGS", Again, "two settings have the name port"),
        (all_settings, "SETTINGS", config.settings.Settings, "SETTINGS beside outside:made cannot"),
        (all_probes, "PROBES", [FINE], "outside:PROBES must be a tuple of `Probe`"),
    ):
        monkeypatch.setitem(sys.modules, "outside", SimpleNamespace(**{name: value}))
        with pytest.raises(UnusableClass, match=f"FEATURES: {why}"):
            read(("outside:made",))


@pytest.mark.parametrize(
    ("prices", "seen"),
    [
        ("m 1 1 1; e 1 0 0; ear 0.006/min; mouth 15/Mchar; pen 0.04/image", ""),
        ("m 1 1 1; e 1 0 0; ear 1 1 1; mouth 0.015/kchar; pen 5 1 40", ""),
        ("m 1 1 1; mouth 1 1 1; pen 1/min", "does not count e, mouth, ear, pen"),
        ("m 0.006/min; e 1 0 0; ear 15/Mchar; mouth 15/Mchar; pen 1 1 1", "does not count m, ear"),
    ],
)
async def test_models_that_the_budget_cannot_count_are_named(prices: str, seen: str) -> None:
    models = {"openai_model": "m", "openai_memory_model": "m", "openai_embedding_model": "e"}
    models |= {"transcription_model": "ear", "speech_model": "mouth", "openai_image_model": "pen"}
    settings = Settings.model_validate({**models, "prices": prices, "budget_per_month": 5})
    rows = [row.seen async for row in check_settings(settings) if row.what == "Prices"]
    assert [row.endswith(seen) for row in rows] == ([True] if seen else []), rows


@pytest.mark.parametrize("price", ["m", "m 1 1", "m 1/min 2", "m 1/hour", "m -1/min", "m x/min"])
def test_a_price_in_no_known_form_and_a_second_one_of_a_model_are_refused(price: str) -> None:
    for prices, why in ((price, "price"), ("m 1 1 1; m 2 2 2", "a model has two prices")):
        with pytest.raises(ValidationError, match=why):
            Settings.model_validate({"prices": prices})
