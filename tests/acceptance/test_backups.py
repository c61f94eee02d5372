"""Two bots share a Redis; one of them is saved, forgets a person, and is restored."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.features.backup.backup_file import BackupReader
from bot.features.backup.command_line import NOTHING_THERE
from tests.acceptance.bot_process import run_command
from tests.acceptance.buttons import erase_now
from tests.acceptance.rig import Rig, open_rig
from tests.servers.bot_api import User
from tests.stored import everything_stored
from tests.valkey import opened

OURS, THEIRS = "ultramarine", "vermilion"
PASSPHRASE = "open sesame"
SECOND_BOT = User(7000000002, "Second", username="second_bot", is_bot=True)


@pytest.fixture
async def second_rig(valkey: str, tmp_path: Path) -> AsyncIterator[Rig]:
    """Give a rig of another bot on the same Redis."""
    async with open_rig(valkey, tmp_path, "webhook", bot=SECOND_BOT) as opened:
        yield opened


async def kept_of(rig: Rig) -> bytes:
    """Return all that Redis stores of a bot's conversations and people."""
    pattern = f"r:{rig.telegram.bot.id}:{{[cu]:*"
    return await everything_stored(rig.environment["REDIS_URL"], pattern)


async def test_one_bot_is_saved_forgets_and_is_restored_beside_another_one(
    rig: Rig, second_rig: Rig, tmp_path: Path
) -> None:
    ours, theirs, file = rig, second_rig, tmp_path / "ours.backup"
    await ours.start(admin_user_ids=1001)
    await theirs.start()
    (anna, annas), (other_anna, other_annas) = ours.anna(), theirs.anna()
    assert annas.id == other_annas.id
    await ours.ask(anna, annas, f"My secret colour is {OURS}")
    await theirs.ask(other_anna, other_annas, f"My secret colour is {THEIRS}")
    await ours.wait_until_learned(2)
    await theirs.wait_until_learned(2)

    encrypted = ours.environment | {"BACKUP_PASSPHRASE": PASSPHRASE}
    status, output = await run_command(encrypted, "backup", str(file))
    assert (status, "1 of 1" in output, "encrypted" in output) == (0, True, True), output
    assert OURS.encode() not in file.read_bytes()
    reader = BackupReader(file)
    reader.unlock(PASSPHRASE)
    found = json.dumps(list(reader.records()))
    assert (OURS in found, THEIRS in found) == (True, False)

    before = await kept_of(theirs)
    await erase_now(ours, anna, annas, "/forget")
    await erase_now(ours, anna, annas, "/clear_memory all")
    assert await kept_of(theirs) == before
    refusals = {
        "BACKUP_PASSPHRASE is not set": ours.environment,
        "is of the bot": theirs.environment | {"BACKUP_PASSPHRASE": PASSPHRASE},
    }
    for sentence_part, environment in refusals.items():
        status, output = await run_command(environment, "restore", str(file))
        assert (status, sentence_part in output) == (1, True), output
    status, output = await run_command(encrypted, "restore", str(file))
    assert (status, "1 not restored: all of it was erased" in output) == (0, True), output
    stored = await ours.stored()
    assert (OURS.encode() in stored, THEIRS.encode() in stored) == (False, True)
    assert await kept_of(theirs) == before
    await theirs.ask(other_anna, other_annas, "What is my secret colour?")
    prompt = "\n".join(str(message.content) for message in theirs.requests[-1].messages)
    assert (THEIRS in prompt, OURS in prompt) == (True, False)


async def test_a_restore_with_a_later_journal_keeps_what_no_erased_message_said(
    rig: Rig, tmp_path: Path
) -> None:
    """Fields of features are known to the restore, too: an unknown one goes with any erasure."""
    files = [tmp_path / "all", tmp_path / "journal"]
    anna, chat = await rig.start_with_anna(openai_embedding_model="off")
    await rig.ask(anna, chat, "/instructions Answer in rhymes")
    said = await anna.say(chat, f"My secret colour is {OURS}")
    await chat.wait_for_reply(after=said)
    assert (await run_command(rig.environment, "backup", str(files[0])))[0] == 0
    await erase_now(rig, anna, chat, "/forget", reply_to=said)
    assert (await run_command(rig.environment, "backup", "--journal", str(files[1])))[0] == 0
    await rig.bot.stop()
    async with opened(rig.environment["REDIS_URL"]) as client:
        await client.call("FLUSHALL")
    again = ("restore", *map(str, files))
    status, output = await run_command(rig.environment, *again, from_scratch=True)
    assert (status, "1 restored" in output) == (0, True), output
    stored = await rig.stored()
    assert (b"rhymes" in stored, OURS.encode() in stored) == (True, False)
    status, output = await run_command(rig.environment, "restore", str(files[1]))
    assert (status, "erasures noted: 1, " in output) == (NOTHING_THERE, True), output
