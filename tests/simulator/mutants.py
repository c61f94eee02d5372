"""Protocols broken on purpose: the simulator is believed because it finds each of them out.

A mutant replaces a piece of a script's text, or a class of the product by a broken one.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass

from memory.protocol.doorbell import Bell, Doorbell
from memory.protocol.turns import Lease, TurnStore
from tests.simulator.bot import Ends, SimulatedBot
from tests.simulator.schedule import Protocol
from tests.simulator.simulator import script_sources


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, the promise that breaks with it, and the protocol that it gives."""

    what: str
    promise: str
    protocol: Callable[[], Protocol]


class MutationMissed(Exception):  # noqa: N818 - says when
    """Raised when a script no longer has the text that a mutant replaces."""


def _lua(*changes: tuple[str, str, str], often: Collection[str] = ()) -> Callable[[], Protocol]:
    """Return a protocol with changes of (script, old text, new text), rare ones helped along."""

    def protocol() -> Protocol:
        texts = script_sources()
        changed: dict[str, str] = {}
        for script, old, new in changes:
            text = changed.get(script, texts[script])
            if old not in text:
                raise MutationMissed(f"{script}: {old}")
            changed[script] = text.replace(old, new)
        return Protocol(changed, often=often)

    return protocol


class _HastyDoorbell(Doorbell):
    """Acknowledges each bell as soon as it is heard, before anything is answered."""

    async def read(self, most: int, block_ms: int) -> list[Bell]:
        bells = await super().read(most, block_ms)
        for bell in bells:
            await self.acknowledge(bell)
        return bells


class _HastyBot(SimulatedBot):
    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        memory = self.memory
        self._worker._doorbell = _HastyDoorbell(memory.client, memory.scripts, memory.keys.doorbell)


class _ForgetfulTurns(TurnStore):
    """Says that a reply is durable and writes nothing."""

    async def write_outbox(self, lease: Lease, parts: bytes) -> None:
        del parts
        await self.renew(lease)


class _ForgetfulBot(SimulatedBot):
    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        turns = self.memory.turns
        self.memory.turns = _ForgetfulTurns(self.memory.store, turns._times, turns._tail)


_FENCE = "redis.call('GET', LEASE) ~= token or "
_STEPS = ("outbox", "sending", "park", "renew", "commit", "set_aside", "failed")
_SENDING = ("sending", "commit")
_SEEN = "if redis.call('ZSCORE', SEEN, ARGV[1]) then return {'duplicate', held} end"
_PUSHED = "redis.call('ZADD', MAILBOX, ARGV[1], ARGV[2])\n"
_GROWS = (
    "redis.call('HINCRBY', META, 'epoch', 1)\n  redis.call('HINCRBY', META, 'erasure', 1)\n",
    "redis.call('DEL', LEASE, TURN)",
)

MUTANTS = (
    Mutant(
        "the fence is not checked",
        "a lost lease counts no more",
        _lua(*((step, _FENCE, "") for step in _STEPS)),
    ),
    Mutant(
        "known updates are not looked for",
        "an update is taken in once",
        _lua(("intake", _SEEN, "")),
    ),
    Mutant(
        "an update is pushed before it is looked for",
        "an update is taken in once",
        _lua(("intake", _SEEN, _PUSHED + _SEEN)),
    ),
    Mutant("bells are acknowledged first", "mail has a bell", lambda: Protocol(make_bot=_HastyBot)),
    Mutant(
        "a bell goes whether or not the holder still has its own",
        "mail has a bell",
        _lua(("ack", "if ARGV[5] ~= '' then", "if false then")),
    ),
    Mutant(
        "nobody asks what a person had forgotten elsewhere",
        "forgotten words are not taken in",
        _lua(("intake", "~= erasure then\n", "== '' then\n"), often=("late",)),
    ),
    Mutant(
        "a forgetting drops the index although newer words rest on it",
        "what is forgotten is gone",
        _lua(("drop_unless_newer", "if id and", "if false and"), often=("pause",)),
    ),
    Mutant(
        "a refused holder takes back what others count as sent",
        "every update is answered",
        _lua(
            *((step, "return 'superseded' end", "return 'refused' end") for step in _SENDING),
            *((step, "and 'superseded' or", "and 'refused' or") for step in _SENDING),
            often=("repeated", "pause"),
        ),
    ),
    Mutant(
        "no outbox is written", "a turn has one reply", lambda: Protocol(make_bot=_ForgetfulBot)
    ),
    Mutant(
        "a clear raises neither epoch nor erasure and leaves the lease",
        "no send begins after a clear",
        _lua(("clear", _GROWS[0], ""), ("clear", _GROWS[1], "")),
    ),
    Mutant(
        "a confirmation is not used up",
        "a replayed confirmation erases nothing",
        _lua(("clear", "redis.call('HSET', CONFIRM, id, 'done|' .. receipt)", "")),
    ),
    Mutant(
        "late updates pass a clear",
        "nothing from before a clear is taken in",
        _lua(("intake", "if cut_off(cut[1], cut[2]) or", "if false and")),
    ),
    Mutant(
        "learning does not look for erasures",
        "no vector of an erased message",
        _lua(
            (
                "learn_vectors",
                "if epoch ~= ARGV[2] or erasure ~= ARGV[3] then return 'refused' end",
                "",
            ),
            often=("hangs",),
        ),
    ),
    Mutant(
        "forgetting a person leaves the lease and raises nothing",
        "no send begins after a clear",
        _lua(
            *(
                (script, old, "")
                for script in ("erase_person", "revise")
                for old in (
                    "redis.call('DEL', LEASE)\n",
                    "redis.call('HINCRBY', META, 'erasure', 1)\n",
                )
            )
        ),
    ),
    Mutant(
        "mail is taken in order of arrival",
        "mail is answered in order",
        _lua(
            *(
                (script, "0, how.most_entries - 1)", "0, how.most_entries - 1, 'REV')")
                for script in ("acquire", "commit")
            )
        ),
    ),
    Mutant(
        "a commit takes everything that waits",
        "every update is answered",
        _lua(
            (
                "commit",
                "redis.call('ZREMRANGEBYSCORE', MAILBOX, id, id)",
                "redis.call('DEL', MAILBOX)",
            )
        ),
    ),
)
