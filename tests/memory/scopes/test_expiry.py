"""Every key of a scope expires with it, and its expiry is set at most once an hour."""

from dataclasses import replace

import pytest

from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.fields import Watermark
from tests.memory.conftest import OPTIONS, memory_of
from tests.memory.turns import ANN, HERE, exchange, forget_ann

_HALF_AN_HOUR_MS = 1_800_000


async def _lives_ms(memory: Memory, key: str) -> int:
    return int(await memory.client.call("PTTL", key))


async def _pass_ms(memory: Memory, passed_ms: int) -> None:
    """Make the expiry of META, and the note when it was set, so much older than now."""
    meta = memory.keys.scope(HERE).meta
    noted = await memory.client.call("HGET", meta, "expiring")
    erasure, at_ms, names = noted.decode().split("|")
    expiring = f"{erasure}|{int(at_ms) - passed_ms}|{names}"
    await memory.client.call("HSET", meta, "expiring", expiring)
    await memory.client.call("PEXPIRE", meta, OPTIONS.ttl_s * 1000 - passed_ms)


async def _write(memory: Memory, seq: int) -> None:
    here = await memory.scopes.read(HERE)
    await memory.scopes.write(here, Write(fields=[Watermark("facts", seq)]))


async def test_a_second_write_within_an_hour_leaves_the_expiry_as_it_is(memory: Memory) -> None:
    meta, whole_ms = memory.keys.scope(HERE).meta, OPTIONS.ttl_s * 1000
    await _write(memory, 1)
    await _pass_ms(memory, _HALF_AN_HOUR_MS)
    await _write(memory, 2)
    assert await _lives_ms(memory, meta) <= whole_ms - _HALF_AN_HOUR_MS
    await _pass_ms(memory, 2 * _HALF_AN_HOUR_MS)
    await _write(memory, 3)
    assert await _lives_ms(memory, meta) > whole_ms - _HALF_AN_HOUR_MS


async def test_a_key_that_is_new_or_was_gone_gets_an_expiry_within_the_hour(memory: Memory) -> None:
    keys = memory.keys.scope(HERE)
    await memory.scripts["touch"](keys, {"ttl_s": OPTIONS.ttl_s})
    await _write(memory, 1)
    assert await _lives_ms(memory, keys.learned) > 0
    here = await memory.scopes.read(HERE)
    await memory.scopes.write(here, Write(removed=list(here.fields)))
    assert not await memory.client.call("EXISTS", keys.learned)
    await _write(memory, 2)
    assert await _lives_ms(memory, keys.learned) > 0


async def test_a_note_of_an_earlier_version_counts_as_old(memory: Memory) -> None:
    """It did not say when the expiry was set."""
    meta = memory.keys.scope(HERE).meta
    await _write(memory, 1)
    await memory.client.call("HSET", meta, "expiring", "0|,meta,learned,")
    await memory.client.call("PEXPIRE", meta, 1_000_000)
    await _write(memory, 2)
    assert await _lives_ms(memory, meta) > 1_000_000


async def test_when_a_forgotten_person_wrote_is_known_for_two_days(memory: Memory) -> None:
    memory = memory_of(memory.client, options=replace(OPTIONS, ttl_s=10 * 86_400))
    seen = memory.keys.scope(HERE).seen
    await exchange(memory, 1)
    await forget_ann(memory)
    assert 0 < await _lives_ms(memory, seen) <= 2 * 86_400_000
    await exchange(memory, 1_000)
    assert await _lives_ms(memory, seen) > 9 * 86_400_000


async def test_a_damaged_key_that_a_refused_clear_removed_expires_when_it_is_written(
    memory: Memory,
) -> None:
    await exchange(memory, 1)
    seen = memory.keys.scope(HERE).seen
    await memory.client.call("SET", seen, "damaged")
    with pytest.raises(NotConfirmed):
        await memory.forgetting.clear(HERE, "nonce", ANN, 5, as_admin=False)
    await exchange(memory, 2)
    assert await _lives_ms(memory, seen) > 0
