"""A feature of the operator works as ours do, and a mistake in it says what to do."""

import re
from types import SimpleNamespace
from typing import Any

import pytest

from bot.commands.sentences import Sentences
from bot.language.catalogue import Catalogue
from tests.acceptance.rig import ROOT, Rig
from tests.servers.model_api import Reply, tool_call

HERE = "tests.acceptance.greeting_feature"


async def test_a_feature_of_the_operator_adds_a_command_a_text_and_a_tool(webhook_rig: Rig) -> None:
    await webhook_rig.start(features=f"{HERE}:feature")
    (anna, chat), script = webhook_rig.anna(), webhook_rig.script
    script.on("Greet", Reply(tool_calls=(tool_call("bow", to="Ben"),)), "I bowed.")

    assert (await webhook_rig.ask(anna, chat, "/hello")).text == "Hello, Anna!"
    assert (await webhook_rig.ask(anna, chat, "Greet Ben, please.")).text == "I bowed."
    first, last = webhook_rig.requests[-2:]
    assert "They wrote 1 message." in str(first.messages)
    assert "bowed to Ben" in str(last.messages)
    assert "/hello" in (await webhook_rig.ask(anna, chat, "/help")).text


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("taken", "FEATURES: two commands have the name export"),
        ("silent", "FEATURES: silent has no English sentence commands.hello"),
        ("broken", f"FEATURES: {HERE}:broken cannot be built (RuntimeError at greeting_feature"),
        ("HERE", f"FEATURES: {HERE}:HERE cannot be imported"),
        ("Bow", f"FEATURES: {HERE}:Bow"),
    ],
)
async def test_a_mistake_in_a_feature_ends_the_start_with_what_to_do(
    webhook_rig: Rig, name: str, why: str
) -> None:
    bot = webhook_rig.another_bot(features=f"{HERE}:{name}")
    await bot.start(until="cannot start")

    refused = await bot.wait_for_log("cannot start")
    assert refused["detail"].startswith(why)
    assert "secret words" not in str(bot.raw)
    assert await bot.exit_status() == 1


def test_the_example_of_the_documentation_is_a_feature() -> None:
    code, *_ = re.findall(
        r"```python\n(.+?)```", (ROOT / "docs" / "features.md").read_text(), re.DOTALL
    )
    module: dict[str, Any] = {}
    exec(compile(code, "docs/features.md", "exec"), module)  # noqa: S102 - our own page

    made = module["feature"](SimpleNamespace(sentences=Sentences(Catalogue())))
    assert [command.name for command in made.commands] == ["hello"]
    assert made.sentences["en"].keys() == made.sentences["de"].keys()
