"""An operator changes `.env` while the bot runs as two processes."""

from pathlib import Path

from tests.acceptance.bot_process import ROOT
from tests.acceptance.rig import Rig
from tests.acceptance.sentences import sentence

ADMIN_ID, ANNA_ID = 1009, 1001


async def test_reloads_reach_all_processes_and_refuse_bad_values(rig: Rig, tmp_path: Path) -> None:
    prompt, env_file = tmp_path / "prompt.md", tmp_path / ".env"
    rig.environment |= {"PWD": str(tmp_path), "PYTHONPATH": str(ROOT)}

    def write(allowed: int, *more: str) -> None:
        lines = (f"ADMIN_USER_IDS={ADMIN_ID}", f"ALLOWED_USER_IDS={allowed}", *more)
        env_file.write_text("\n".join(lines), encoding="utf-8")

    write(ADMIN_ID)
    [worker] = await rig.start_apart()
    (ada, adas), (anna, annas) = rig.person(ADMIN_ID, "Ada"), rig.anna()
    assert (await rig.ask(ada, adas, "/reload")).text == sentence("reload.unchanged")
    assert (await rig.ask(anna, annas, "Hello?")).text != "All right."

    prompt.write_text("You are a parrot.", encoding="utf-8")
    write(ANNA_ID, f"SYSTEM_PROMPT_FILE={prompt}", "OPENAI_MODEL=another")
    seen = len(rig.bot.log)
    answer = await rig.ask(ada, adas, "/reload")
    assert answer.text.splitlines()[0].endswith(": ALLOWED_USER_IDS, SYSTEM_PROMPT_FILE")
    assert answer.text.splitlines()[-1].endswith(": OPENAI_MODEL")
    await rig.bot.wait_for_log("reloaded", after=seen)
    assert (await rig.ask(anna, annas, "Hello?")).text == "All right."
    assert rig.requests[-1].messages[0].content.startswith("You are a parrot.")

    write(ADMIN_ID, "PRICES=my-secret")
    prompt.write_text("", encoding="utf-8")
    answer = await rig.ask(ada, adas, "/reload")
    assert "PRICES takes" in answer.text
    write(ANNA_ID, f"SYSTEM_PROMPT_FILE={prompt}")
    answer = await rig.ask(ada, adas, "/reload")
    assert answer.text.endswith("prompt.md is empty")
    assert (await rig.ask(anna, annas, "Still there?")).text == "All right."
    assert rig.requests[-1].messages[0].content.startswith("You are a parrot.")

    prompt.write_text("You are an owl.", encoding="utf-8")
    write(ADMIN_ID, f"SYSTEM_PROMPT_FILE={prompt}")
    for bot in (rig.bot, worker):
        seen = len(bot.log)
        bot.hang_up()
        line = await bot.wait_for_log("reloaded", after=seen)
        assert line["changed"] == ["ALLOWED_USER_IDS", "SYSTEM_PROMPT_FILE"]
    asked = len(rig.requests)
    await anna.say(annas, "And now?")
    assert (await rig.ask(ada, adas, "Who are you?")).text == "All right."
    assert [each.messages[0].content[:15] for each in rig.requests[asked:]] == ["You are an owl."]
    for bot in (rig.bot, worker):
        assert "my-secret" not in "\n".join(bot.raw)
