"""What a round of learning costs Redis after a turn, with the behaviors and settings of the bot."""

from collections import Counter
from dataclasses import dataclass
from statistics import median

import pytest

from memory.learning.learner import LearningRound
from memory.scopes.fields import ToolWrites
from memory.scopes.writes import Remember
from memory.store.keys import Scope
from tests.lab.sessions import conversation, made_up_topics
from tests.lab.talking import HERE, talking
from tests.lab.wire_tap import WireTap
from tests.memory.conftest import TOKENS
from tests.memory.turns import set_learned
from tests.settings import Settings
from tests.valkey import ValkeyServer

TURNS, WARM_FROM, WRITES_EVERY = 24, 8, 5
VECTOR_BYTES = 268  # 256 dimensions, a scale, and what the protocol adds


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a round; `nbytes` of both directions, without vectors; `has_writes` of tools."""

    is_asked: bool
    has_writes: bool
    trips: int
    nbytes: int
    commands: int


def commands_of(server: ValkeyServer) -> int:
    """Return how many commands the server has carried out, those inside scripts included."""
    calls: Counter[str] = Counter()
    for line in server.ask("INFO commandstats").decode().splitlines():
        name, _, figures = line.partition(":calls=")
        if figures and "|" not in name:
            calls[name] += int(figures.split(",")[0])
    return calls.total() - calls["cmdstat_info"]


async def test_a_round_takes_few_round_trips_bytes_and_commands(
    valkey_server: ValkeyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was 23 trips, 20 kB and 75 commands until November 2026; with a model call 31, 31, 112."""
    valkey_server.ask("FLUSHALL")
    costs: list[Cost] = []
    settings = Settings(_env_file=None)
    async with (
        WireTap(valkey_server.port) as tap,
        talking(settings, TOKENS, tap.url) as (talk, tape),
    ):
        learn = talk.memory.learn
        # A process sends the text of a script with its first call. This one is called once an hour.
        await talk.memory.store.run("touch", HERE.facts_scope, {"ttl_s": 1})

        async def counted(scope: Scope) -> LearningRound:
            if has_writes := tape.turn % WRITES_EVERY == 0:
                talk.memory.turns.learning_due.clear()
                wanted = Remember(f"Clara has {tape.turn} boats")
                waiting = ToolWrites(str(tape.turn), 1, (wanted,))
                await set_learned(talk.memory, HERE, {waiting.name: waiting.stored})
            commands, begun = commands_of(valkey_server), len(tap.passed)
            done = await learn(scope)
            if tape.turn >= WARM_FROM:
                trips = tap.passed[begun:]
                vectors = VECTOR_BYTES * (done.messages + done.records)
                nbytes = sum(trip.nbytes for trip in trips) - vectors
                used = commands_of(valkey_server) - commands
                costs.append(Cost(done.calls > 0, has_writes, len(trips), nbytes, used))
            return done

        monkeypatch.setattr(talk.memory, "learn", counted)
        for each in conversation(TURNS, "brisk", made_up_topics()):
            await talk.exchange(each)
    asked = [each for each in costs if each.is_asked and not each.has_writes]
    others = [each for each in costs if not each.is_asked and not each.has_writes]
    assert len(asked) > 2
    assert len(others) > TURNS // 3
    assert sum(each.is_asked and each.has_writes for each in costs)
    assert max(each.trips for each in costs) <= 8
    assert median(each.trips for each in others) <= 3
    assert max(each.nbytes for each in costs) <= 8_000
    assert median(each.nbytes for each in others) <= 800
    assert median(each.nbytes for each in asked) <= 5_500
    assert max(each.commands for each in costs) <= 70
    assert median(each.commands for each in others) <= 10
    assert median(each.commands for each in asked) <= 45
