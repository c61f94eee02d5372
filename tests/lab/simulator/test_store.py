"""The in-memory Redis answers as a real one does; otherwise the simulator would prove nothing."""

import time
from random import Random

import pytest

from memory.store.client import RedisClient
from memory.store.commands import Reply, Script, ScriptCall
from memory.store.errors import StoreError

pytest.importorskip("lupa", reason="the simulator runs the protocol's Lua in lupa")

from memory.store.keys import Keys, Scope
from tests.lab.simulator.client import DirectClient, script_sources
from tests.lab.simulator.random_calls import FullCommand, RandomSteps, commands, read_answer
from tests.lab.simulator.store.keyspace import NotSimulatedError
from tests.lab.simulator.store.lua import Lua
from tests.lab.simulator.store.server import InMemoryRedis

COMMANDS, STEPS = 400, 250
ANY = "return redis.call(unpack(ARGV))"
WITHOUT_ORDER = ("HGETALL", "HKEYS", "HVALS")
READ_DIFFERENTLY_BY_THE_SDK = ("XPENDING", "XAUTOCLAIM", "XCLAIM", "XINFO CONSUMERS")


def _on_the_wall_clock() -> DirectClient:
    return DirectClient(time.time, {"any": ANY})


def _in_lua(command: FullCommand) -> ScriptCall:
    return ScriptCall(ANY, "", (), [*str(command[0]).split(), *command[1:]])


def _comparable(command: FullCommand, reply: Reply, *, in_lua: bool) -> Reply:
    """Return a reply without what depends on the time or on the server's version."""
    match command[0]:
        case "XPENDING":
            return [[entry, consumer, count] for entry, consumer, _, count in reply]
        case "XINFO CONSUMERS":
            return [facts[:4] for facts in reply]
        case "PTTL":
            return round(reply, -4)
        case name if name in WITHOUT_ORDER and in_lua:
            return sorted(reply)
    return [list(pair) for pair in reply] if "WITHSCORES" in command and not in_lua else reply


@pytest.mark.parametrize("seed", range(8))
async def test_a_real_server_answers_random_commands_alike(store: RedisClient, seed: int) -> None:
    random, simulated, real_lua = Random(seed), _on_the_wall_clock(), Script(store, ANY)
    for command in commands(random, COMMANDS):
        in_lua = random.random() < 0.4 or command[0] in READ_DIFFERENTLY_BY_THE_SDK
        sent = _in_lua(command) if in_lua else command
        try:
            real = await (real_lua((), _in_lua(command).args) if in_lua else store.call(*command))
        except StoreError:
            with pytest.raises(StoreError):
                simulated.carry_out(sent)
            continue
        expected = _comparable(command, real, in_lua=in_lua)
        assert _comparable(command, simulated.carry_out(sent), in_lua=in_lua) == expected, command


@pytest.mark.parametrize("seed", range(4))
async def test_random_steps_of_the_protocol_get_the_same_answers_from_a_real_server(
    store: RedisClient, seed: int
) -> None:
    sources, simulated, steps = script_sources(), _on_the_wall_clock(), RandomSteps(Random(seed))
    keys = Keys(42).scope(Scope.of_chat(7))
    for _ in range(STEPS):
        script, args = steps.next()
        answer = read_answer(simulated.carry_out(ScriptCall(sources[script], "", keys, args)))
        expected = read_answer(await Script(store, sources[script])(keys, args))
        assert answer == expected, (script, args)
        steps.learn(script, answer)


@pytest.mark.parametrize(
    "source",
    [
        "return {1, 2.9, 'three', true, false, {}, {{'deep'}, 4}, nil, 'unseen'}",
        "return {ok = 'FINE'}",
        "return",
        "return {false}",
        "redis.call('SET', 'w{t}', 'x') return redis.pcall('HGET', 'w{t}', 'f').err ~= nil",
        "return {tostring(redis.call('GET', 'nothing')), redis.call('SET', 'a{t}', 1.5).ok}",
        "return redis.call('GET', 'a{t}')",
        "return {redis.call('HMGET', 'h{t}', 'f', 'no'), #redis.call('XRANGE', 'x{t}', '-', '+')}",
        "return string.format('%.0f', 1767603600123) .. '|' .. 2^40",
        "redis.call('ZADD', 'z{t}', 1767603600123, 'm') return redis.call('ZSCORE', 'z{t}', 'm')",
        "return {redis.call('HSET', 'h{t}', 'f', 2^31), redis.call('HGET', 'h{t}', 'f')}",
        "local all = {} for w in ('a|-1|b'):gmatch('[^|]+') do all[#all + 1] = w end return all",
        "return table.concat({1, 'b', 2.5}, ',') .. #KEYS .. #ARGV",
    ],
)
async def test_scripts_convert_values_as_on_a_real_server(store: RedisClient, source: str) -> None:
    redis = InMemoryRedis(lambda: int(time.time() * 1000), Lua())
    for _ in range(2):
        assert redis.run(source.encode(), [], []) == await Script(store, source)(())


@pytest.mark.parametrize("command", [("OBJECT", "FREQ", "key"), ("SET", "key", "value", "NX")])
def test_a_command_that_is_not_simulated_raises_an_error(command: FullCommand) -> None:
    with pytest.raises(NotSimulatedError):
        _on_the_wall_clock().carry_out(command)
