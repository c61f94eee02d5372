"""What a turn asks of Redis, seen on the wire."""

from functools import partial
from pathlib import Path

from tests.acceptance.rig import open_rig
from tests.lab.traffic import Traffic, is_learned
from tests.lab.wire_tap import WireTap
from tests.valkey import ValkeyServer

INTAKE = ["ZADD+spoke+intake", "XADD"]
TURN = [
    *("XREADGROUP", "acquire+read_notes", "count_usage"),
    *("count_usage+outbox", "ZADD+commit", "ack"),
]


async def test_a_turn_takes_two_round_trips_at_intake_and_six_from_bell_to_acknowledgement(
    valkey_server: ValkeyServer, tmp_path: Path
) -> None:
    """The person's facts come with the lease, which is asked for when the message has settled.

    Nobody waits for the third: while the model thinks, it counts what the question's vector took.

    Only the last is a steady turn: the second finds the conversation's first vectors.
    """
    valkey_server.ask("FLUSHALL")
    async with WireTap(valkey_server.port) as tap, open_rig(tap.url, tmp_path) as rig:
        await rig.start(coalesce_s=0.2, user_turns_per_minute=0, sends_per_second=0)
        anna, chat = rig.anna()
        for words in ("Hello", "My boat is called Nessie.", "How is my boat called?"):
            begun = len(tap.passed)
            await rig.ask(anna, chat, words)
            await tap.wait_for(partial(is_learned, tap, begun), timeout_s=10)
        assert Traffic.of(tap.passed[begun:], anna.id).steps == INTAKE + TURN
