"""Commands of hashes."""

from collections.abc import Callable

from tests.lab.simulator.store.keyspace import Args, Hash, Keyspace, Reply, integer

_NONE = Hash()


def _fields(space: Keyspace, args: Args) -> Hash:
    return space.get(args[0], Hash) or _NONE


def hset(space: Keyspace, args: Args) -> int:
    fields = space.made(args[0], Hash)
    before = len(fields)
    fields.update(zip(args[1::2], args[2::2], strict=True))
    return len(fields) - before


def hsetnx(space: Keyspace, args: Args) -> Reply:
    return 0 if args[1] in _fields(space, args) else hset(space, args)


def hmget(space: Keyspace, args: Args) -> Reply:
    fields = _fields(space, args)
    return [fields.get(name) for name in args[1:]]


def hgetall(space: Keyspace, args: Args) -> Reply:
    return [part for pair in _fields(space, args).items() for part in pair]


def hdel(space: Keyspace, args: Args) -> Reply:
    fields = _fields(space, args)
    gone = sum(fields.pop(name, None) is not None for name in args[1:])
    space.tidy(args[0])
    return gone


def hincrby(space: Keyspace, args: Args) -> Reply:
    value = integer(_fields(space, args).get(args[1], b"0")) + integer(args[2])
    hset(space, [args[0], args[1], b"%d" % value])
    return value


COMMANDS: dict[bytes, Callable[[Keyspace, Args], Reply]] = {
    b"HDEL": hdel,
    b"HEXISTS": lambda space, args: int(args[1] in _fields(space, args)),
    b"HGET": lambda space, args: _fields(space, args).get(args[1]),
    b"HGETALL": hgetall,
    b"HINCRBY": hincrby,
    b"HLEN": lambda space, args: len(_fields(space, args)),
    b"HKEYS": lambda space, args: list(_fields(space, args)),
    b"HMGET": hmget,
    b"HSET": hset,
    b"HSETNX": hsetnx,
    b"HVALS": lambda space, args: list(_fields(space, args).values()),
}
