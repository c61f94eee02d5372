"""A bot that cannot start says why in one line without secrets and exits with 1 (A23)."""

import asyncio
import shlex
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from bot.telegram.bot_api import TelegramClient
from tests.acceptance.bot_process import BotProcess
from tests.acceptance.rig import Rig
from tests.valkey import OneNodeCluster, free_port


async def test_every_bad_setting_is_named_with_the_values_it_takes(rig: Rig) -> None:
    bot = rig.another_bot(
        from_scratch=True,
        port="99999",
        telegram_bot_token="not-a-token",
        system_prompt_file="/nowhere",
    )
    await bot.start(until="PORT takes 0 to 65535")
    assert await bot.exit_status() == 1
    assert bot.raw == [
        "PORT takes 0 to 65535",
        "SYSTEM_PROMPT_FILE takes the path of an existing file",
        "TELEGRAM_BOT_TOKEN takes a token from @BotFather: `123456:ABC…`",
    ]


@pytest.mark.parametrize(
    ("settings", "reason", "advice"),
    [
        ({"telegram_bot_token": "123456:wrong-secret"}, "BadToken", "TELEGRAM_BOT_TOKEN"),
        ({"redis_url": "redis://127.0.0.1:1"}, "StoreUnavailable", "REDIS_URL"),
        (
            {"redis_url": "", "data_dir": "/dev/null/data", "makelevel": "1"},
            "EmbeddedUnwritable",
            "DATA_DIR=~/ricordo make run",
        ),
        (
            {"telegram_bot_token": "", "webhook_url": "", "dyno": "web.1"},
            "TELEGRAM_BOT_TOKEN is not set",
            "",
        ),
        (
            {"behaviors": "tests.acceptance.operator_behaviors:Clashing"},
            "FunctionNameClash",
            "BEHAVIORS",
        ),
    ],
    ids=["wrong token", "no Redis", "no writable folder", "no token on a platform", "tool name"],
)
async def test_the_reason_for_an_impossible_start_is_shown(
    rig: Rig, settings: dict[str, str], reason: str, advice: str
) -> None:
    refused = await refusal_of(rig.another_bot(from_scratch=False, **settings))
    assert (refused["reason"], advice in refused.get("advice", "")) == (reason, True)


async def test_a_port_in_use_is_named_with_the_command_that_was_typed(rig: Rig) -> None:
    port = urlsplit(rig.telegram.url).port
    refused = await refusal_of(rig.another_bot(module="bot", port=port, makelevel=""))
    assert refused["reason"] == "PortUnavailable"
    assert refused["advice"].endswith(f"PORT=8081 {shlex.quote(sys.executable)} -m bot")


async def refusal_of(bot: BotProcess) -> dict[str, Any]:
    """Start a bot that cannot start; return the line of its log that says why."""
    await bot.start(until="cannot start")
    refused = await bot.wait_for_log("cannot start")
    assert await bot.exit_status() == 1
    return refused


async def test_a_bot_takes_a_webhook_over_if_it_may(rig: Rig) -> None:
    client = TelegramClient(rig.telegram.token, rig.telegram.url)
    await client.set_webhook(f"http://127.0.0.1:{free_port()}/secret-path", "s3cret")
    await client.close()
    await rig.start(webhook_url="", take_over_webhook="yes")
    await rig.bot.wait_for_log("webhook taken over: the process there gets no messages any more")
    await rig.ask(*rig.anna(), "Are you there?")


async def test_a_second_process_on_one_data_folder_is_refused_and_the_first_continues(
    rig: Rig, tmp_path: Path
) -> None:
    folder = tmp_path / "data"
    await rig.start(redis_url="", data_dir=folder, dyno="web.1")
    await rig.bot.wait_for_log("no REDIS_URL: this platform's disk is lost with every deploy")
    refused = await refusal_of(rig.another_bot())
    assert refused["reason"] == "EmbeddedBusy"
    assert refused["detail"] == f"another process is using {folder}"
    assert "DATA_DIR=" in refused["advice"]
    await rig.ask(*rig.anna(), "Are you there?")


@pytest.mark.parametrize("server", ["https://api.openai.com/v1", "http://127.0.0.1:1/v1"])
async def test_a_start_without_a_key_or_with_a_misspelt_one_says_so(rig: Rig, server: str) -> None:
    """An own model server needs no key."""
    bot = rig.another_bot(
        openai_api_key="",
        openai_key="sk-somebodys",
        openai_base_url=server,
        redis_url=f"redis://127.0.0.1:{free_port()}",
    )
    await refusal_of(bot)
    unknown = await bot.wait_for_log("unknown setting")
    assert unknown["advice"] == "if you mean OPENAI_API_KEY, rename OPENAI_KEY to OPENAI_API_KEY"
    events = [line["event"] for line in bot.log]
    is_openai = "openai.com" in server
    assert ("OPENAI_API_KEY is not set: no message can be answered" in events) is is_openai
    assert "sk-somebodys" not in "".join(bot.raw)


async def test_a_node_of_a_cluster_is_refused_as_one_server(
    rig: Rig, cluster_server: OneNodeCluster
) -> None:
    url = f"redis://127.0.0.1:{cluster_server.port}"
    refused = await refusal_of(rig.another_bot(redis_url=url))
    assert refused["reason"] == "StoreUnfit"
    assert "begin REDIS_URL with redis+cluster://" in refused["detail"]


async def test_a_server_that_only_speaks_like_redis_is_refused(rig: Rig) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while command := await reader.read(65_536):
            writer.write(b"+PONG\r\n" * command.count(b"*"))
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as pong:
        port = pong.sockets[0].getsockname()[1]
        refused = await refusal_of(rig.another_bot(redis_url=f"redis://127.0.0.1:{port}"))
        assert "neither Redis nor Valkey" in refused["detail"]
