"""A bot that cannot start says why, in one line without secrets, and exits with 1 (A23)."""

from pathlib import Path

import pytest

from tests.acceptance.rig import Rig
from tests.valkey import free_port


async def test_every_bad_setting_is_named_and_what_it_takes(webhook_rig: Rig) -> None:
    bot = webhook_rig.another_bot(
        from_scratch=True,
        port="99999",
        telegram_bot_token="not-a-token",
        system_prompt_file="/nowhere",
    )
    await bot.start(until="PORT takes 0 to 65535")
    assert await bot.exit_status() == 1
    assert bot.raw == [
        "PORT takes 0 to 65535",
        "SYSTEM_PROMPT_FILE takes the path of a file",
        "TELEGRAM_BOT_TOKEN takes a token from @BotFather: `123456:ABC…`",
    ]


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"telegram_bot_token": "123456:wrong-secret"}, "BadToken"),
        ({"redis_url": f"redis://127.0.0.1:{free_port()}"}, "StoreUnavailable"),
        (
            {"telegram_bot_token": "", "webhook_url": "", "dyno": "web.1"},
            "TELEGRAM_BOT_TOKEN is not set",
        ),
    ],
    ids=["wrong token", "no Redis", "no token on a platform"],
)
async def test_what_makes_a_start_impossible_is_said(
    webhook_rig: Rig, settings: dict[str, str], reason: str
) -> None:
    bot = webhook_rig.another_bot(from_scratch=True, **settings)
    await bot.start(until="cannot start")
    assert (await bot.wait_for_log("cannot start"))["reason"] == reason
    assert await bot.exit_status() == 1


async def test_a_bot_that_would_poll_leaves_anothers_webhook_alone(webhook_rig: Rig) -> None:
    """The running bot keeps its messages; a worker, which does not poll, starts all the same."""
    rig = webhook_rig
    await rig.start()
    second = rig.another_bot(webhook_url="")
    await second.start(until="cannot start")
    refused = await second.wait_for_log("cannot start")
    assert refused["reason"] == "WebhookTaken"
    assert "TAKE_OVER_WEBHOOK=yes" in refused["detail"]
    assert await second.exit_status() == 1
    await rig.another_bot(command="worker", webhook_url="").start()
    assert rig.telegram.calls_to("deleteWebhook") == []
    await rig.ask(*rig.anna(), "Are you there?")


async def test_a_bot_takes_a_webhook_over_where_it_may(webhook_rig: Rig) -> None:
    rig = webhook_rig
    await rig.start()
    await rig.bot.stop()
    second = rig.another_bot(webhook_url="", take_over_webhook="yes")
    await second.start()
    await second.wait_for_log("webhook taken over: the process there gets no messages any more")
    await rig.ask(*rig.anna(), "Are you there?")


async def test_a_second_process_on_one_data_folder_is_refused_and_the_first_goes_on(
    webhook_rig: Rig, tmp_path: Path
) -> None:
    rig, folder = webhook_rig, tmp_path / "data"
    await rig.start(redis_url="", data_dir=folder, dyno="web.1")
    await rig.bot.wait_for_log("no REDIS_URL: this platform's disk is lost with every deploy")
    second = rig.another_bot(from_scratch=True)
    await second.start(until="cannot start")
    refused = await second.wait_for_log("cannot start")
    assert refused["reason"] == "EmbeddedBusy"
    assert refused["detail"] == f"another process is using {folder}"
    assert await second.exit_status() == 1
    await rig.ask(*rig.anna(), "Are you there?")
