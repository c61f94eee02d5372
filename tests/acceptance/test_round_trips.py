"""The round trips of a turn to Redis, counted on the wire."""

import asyncio
from functools import partial
from pathlib import Path

from tests.acceptance.buttons import shown
from tests.acceptance.rig import open_rig
from tests.lab.wire_tap import Traffic, WireTap, is_over
from tests.servers.model_api import Reply
from tests.valkey import ValkeyServer

INTAKE = ["ZADD+intake", "XADD"]
TURN = [
    *("XREADGROUP", "acquire+read_scope", "HSET"),
    *("count_usage+outbox", "ZADD+commit", "ack"),
]


async def test_a_turn_takes_two_round_trips_at_intake_and_six_from_wake_up_to_acknowledgement(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    """The reply does not wait for the third, `HSET`. Only the last turn searches, as most do."""
    valkey_server.ask("FLUSHALL")
    async with WireTap(valkey_server.port) as tap, open_rig(tap.url, tmp_path) as rig:
        anna, chat = rig.anna()
        keys = rig.keys
        valkey_server.ask(f"HSET {keys.access('admitted')} {anna.id} 1|link|1009")
        valkey_server.ask(f"INCR {keys.access('version')}")
        await rig.start(access="ask", admin_user_ids=1009, window_messages=2)
        for text in ("Hello", "My boat is called Nessie."):
            begun = len(tap.passed)
            await rig.ask(anna, chat, text)
            await tap.wait_for(partial(is_over, tap, begun, "unlease"))
        begun, gate = len(tap.passed), asyncio.Event()
        rig.script.on("How is my boat called?", Reply("Nessie.", gate=gate))
        asking = asyncio.create_task(rig.ask(anna, chat, "How is my boat called?"))
        await rig.wait_until_asked("How is my boat called?")
        before = list(map(id, tap.passed[begun:]))
        gate.set()
        await asking
        await tap.wait_for(partial(is_over, tap, begun, "unlease"))
        traffic = Traffic.of(tap.passed[begun:], anna.id)
        assert traffic.steps == INTAKE + TURN
        # The model waits for these four, and once a second for the length of the ready queue.
        trips = [trip for trip in (*traffic.intake, *traffic.turn) if id(trip) in before]
        names = ["+".join(trip.names) for trip in trips]
        assert [each for each in names if each != "HSET"] == INTAKE + TURN[:2]
        # After an edit of the newest question the conversation is not loaded again.
        asked = await anna.say(chat, "Where is my boat?")
        answer = await chat.wait_for_reply(after=asked)
        begun = len(tap.passed)
        rig.script.on("Where is my bota?", "In Oulu.")
        await anna.edit(asked, "Where is my bota?")
        await shown(rig, answer, "In Oulu.")
        loads = [trip for trip in tap.passed[begun:] if "acquire" in trip.names]
        assert {trip.is_about(b"Nessie") for trip in loads} == {False}


async def test_a_process_without_work_sends_four_commands_a_second_at_most(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    """It reads erasures once a second, so this takes three. The sweep each minute is left out."""
    valkey_server.ask("FLUSHALL")
    async with WireTap(valkey_server.port) as tap, open_rig(tap.url, tmp_path) as rig:
        await rig.start()

        def sent() -> list[str]:
            return [name for trip in tap.passed for name in trip.names]

        await tap.wait_for(lambda: sent().count("remove_consumers") == 2)  # the end of a sweep
        begun, reads = len(sent()), sent().count("XRANGE")
        await tap.wait_for(lambda: sent().count("XRANGE") == reads + 3)
        assert len(sent()[begun:]) <= 12
