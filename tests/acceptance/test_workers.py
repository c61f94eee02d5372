"""Several processes on one Redis share the conversations and take over from each other."""

from pathlib import Path

from tests.acceptance.rig import Rig, open_rig


async def test_one_process_polls_and_another_takes_over_when_it_is_killed(
    valkey: str, tmp_path: Path
) -> None:
    """The right to poll and a turn that was under way, after the seconds of their leases."""
    async with open_rig(valkey, tmp_path, "polling") as rig:
        killed = await rig.start(lease_s=4)
        (anna, chat), (ben, bens) = rig.anna(), rig.ben()
        await rig.ask(anna, chat, "Hello?")
        gate = rig.script.hold("Slowly", "Never said.", "Here you are.")
        slow = await rig.say_until_asked(ben, bens, "Slowly")
        heir = rig.another_bot()
        await heir.start()
        for text in ("Still there?", "And now?"):
            await rig.ask(anna, chat, text)
        assert (len(killed.lines("update")), len(heir.lines("update"))) == (4, 0)
        await killed.kill()
        gate.set()
        await rig.ask(anna, chat, "Anybody?")
        assert (await bens.wait_for_reply(after=slow)).text == "Here you are."
        polls = rig.telegram.calls_to("getUpdates")
        conflicts = [poll for poll in polls if poll.answer and poll.answer.status == 409]
        # Only the poll that was under way when its process died is ended by another.
        assert len(conflicts) <= 1
        assert heir.lines("telegram call failed") == []


async def test_forked_workers_answer_and_stop_together(rig: Rig) -> None:
    await rig.start(command="web")
    workers = rig.another_bot(command="worker --processes 2", webhook_url="")
    await workers.start()
    await workers.wait_until(lambda: len(workers.lines("serving")) == 2)
    for text in ("One?", "Two?"):
        await rig.ask(*rig.anna(), text)
    assert await workers.stop() == 0
    assert len(workers.lines("stopping")) == 2
