"""Commands of keys and strings, and the time."""

from collections.abc import Callable

from tests.lab.simulator.store.keyspace import OK, Args, Keyspace, NotSimulatedError, Reply, integer


def delete(space: Keyspace, keys: Args) -> Reply:
    return sum(space.exists(key) and space.delete(key) for key in keys)


def _expire(unit_ms: int) -> Callable[[Keyspace, Args], Reply]:
    def expire(space: Keyspace, args: Args) -> Reply:
        if len(args) > 2:
            raise NotSimulatedError("EXPIRE with options")
        after_ms = integer(args[1]) * unit_ms
        if not space.exists(args[0]):
            return 0
        space.expire_at(args[0], space.now_ms() + after_ms)
        return 1

    return expire


def pttl(space: Keyspace, args: Args) -> Reply:
    if not space.exists(args[0]):
        return -2
    expiry = space.expiry(args[0])
    return -1 if expiry is None else expiry - space.now_ms()


def persist(space: Keyspace, args: Args) -> Reply:
    if not space.exists(args[0]) or space.expiry(args[0]) is None:
        return 0
    space.expire_at(args[0], None)
    return 1


def set_(space: Keyspace, args: Args) -> Reply:
    """Set a string, perhaps with `PX` and then `NX`; other options are not simulated."""
    if [each.upper() for each in args[2::2]] not in ([], [b"PX"], [b"PX", b"NX"]):
        raise NotSimulatedError("SET with other options than PX and NX")
    if args[4:] and space.exists(args[0]):
        return None
    space.put(args[0], args[1])
    if args[2:]:
        space.expire_at(args[0], space.now_ms() + integer(args[3]))
    return OK


def time(space: Keyspace, _: Args) -> Reply:
    seconds, ms = divmod(space.now_ms(), 1000)
    return [b"%d" % seconds, b"%d" % (ms * 1000)]


COMMANDS: dict[bytes, Callable[[Keyspace, Args], Reply]] = {
    b"DEL": delete,
    b"EXISTS": lambda space, keys: sum(map(space.exists, keys)),
    b"EXPIRE": _expire(1000),
    b"GET": lambda space, args: space.get(args[0], bytes),
    b"PERSIST": persist,
    b"PEXPIRE": _expire(1),
    b"PTTL": pttl,
    b"SET": set_,
    b"STRLEN": lambda space, args: len(space.get(args[0], bytes) or b""),
    b"TIME": time,
    b"UNLINK": delete,
}
