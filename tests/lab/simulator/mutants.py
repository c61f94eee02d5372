"""Protocols that are broken on purpose. The simulator can be trusted because it finds each one.

A mutant replaces a piece of a script's text, or breaks each bot that was built.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.lab.simulator import broken_bots
from tests.lab.simulator.bot import SimulatedBot
from tests.lab.simulator.client import script_sources
from tests.lab.simulator.schedule import Protocol


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, the promise that this breaks, and how it is broken.

    `changes` are scripts, a piece of their text, and what stands there instead; `breaks` is called
    with each bot after it was built. People do only what `acts` names, the faults of `often` are
    frequent, and all people are one if `alone`, so that rare schedules are found sooner.

    `since` is the first seed to search. If few schedules reach the broken step, it lies shortly
    before a seed that does; a search from 0 would find one too, but would take longer.
    """

    what: str
    promise: str
    changes: Sequence[tuple[str, str, str]] = ()
    breaks: Callable[[SimulatedBot], None] = lambda _: None
    acts: str = ""
    often: str = ""
    alone: bool = False
    reminds: bool = False
    since: int = 0

    def protocol(self) -> Protocol:
        """Return the broken protocol."""
        texts = script_sources()
        changed: dict[str, str] = {}
        for scripts, old, new in self.changes:
            for script in scripts.split():
                text = changed.get(script, texts[script])
                assert old in text, f"{script} has no {old}"
                changed[script] = text.replace(old, new)
        return Protocol(
            changed,
            breaks=self.breaks,
            often=self.often.split(),
            reminds=self.reminds,
            edits=not self.acts or "edit" in self.acts or "retry" in self.acts,
            acts=self.acts.split(),
            alone=self.alone,
        )


_FENCE = "redis.call('GET', LEASE) ~= step.token or "
_STEPS = "outbox sending park renew commit set_aside failed"
_NOTED = "redis.call('ZADD', SEEN, 'NX', whole(now), update_id)"
_SEEN = f"if {_NOTED} == 0 then return outcome('duplicate') end"
_BEGINNING = "acquire commit"
_APPENDED = "for _, message in ipairs(messages) do"
_GROWS = (
    "redis.call('HINCRBY', META, 'epoch', 1)\n  redis.call('HINCRBY', META, 'erasure', 1)\n",
    "if redis.call('DEL', LEASE) == 1 then signal() end\n  redis.call('DEL', TURN)\n",
)

MUTANTS = (
    Mutant("the fence is not checked", "a lost lease is refused", [(_STEPS, _FENCE, "")], since=6),
    Mutant(
        "duplicate updates are not recognised",
        "an update is accepted once",
        [("intake", _SEEN, _NOTED)],
    ),
    Mutant(
        "wake-ups are acknowledged first",
        "waiting updates have a wake-up",
        breaks=broken_bots.hasty,
    ),
    Mutant(
        "intake does not check what a person had forgotten elsewhere",
        "forgotten messages are not accepted",
        [("intake", "~= erasure then\n", "== '' then\n")],
        acts="text forget",
        often="late pause",
        alone=True,
        since=302,
    ),
    Mutant(
        "a forgetting drops the index although newer messages need it",
        "what is forgotten is gone",
        [("drop_unless_newer", "if id and", "if false and")],
        acts="text forget",
        often="late",
        alone=True,
        since=137,
    ),
    Mutant("storing a reply raises an error", "every error is expected", breaks=broken_bots.clumsy),
    Mutant("no outbox is stored", "a turn has one reply", breaks=broken_bots.forgetful, since=116),
    Mutant(
        "a clear raises neither epoch nor erasure and leaves the lease",
        "no send begins after a clear",
        [("clear", _GROWS[0], ""), ("clear", _GROWS[1], "")],
        acts="text clear",
        since=105,
    ),
    Mutant(
        "a confirmation can be used twice",
        "a replayed confirmation erases nothing",
        [("clear", "ask({[id] = 'done|' .. receipt .. (asked and '|' .. asked or '')})", "")],
        since=31,
    ),
    Mutant(
        "late updates from before a clear are accepted",
        "nothing from before a clear is accepted",
        [("intake", "if is_cut_off(cut_update, cut_at) or", "if false and")],
        acts="text clear",
        often="late",
        since=16,
    ),
    Mutant(
        "learning does not check for erasures",
        "no vector of an erased message",
        [("learn_vectors", "epoch ~= request.epoch or erasure ~= request.erasure", "false")],
        often="hangs",
        since=57,
    ),
    Mutant(
        "forgetting a person leaves the lease and raises nothing",
        "no send begins after a clear",
        [
            ("erase_person revise", "if redis.call('DEL', LEASE) == 1 then signal() end\n", ""),
            ("erase_person revise", "redis.call('HINCRBY', META, 'erasure', 1)\n", ""),
        ],
        acts="text delete_message",
        often="late",
        alone=True,
        since=236,
    ),
    Mutant(
        "the newest updates are taken first",
        "updates are answered in order",
        [(_BEGINNING, "MAX_ENTRIES - 1)", "MAX_ENTRIES - 1, 'REV')")],
    ),
    Mutant(
        "a commit takes everything that waits",
        "every update is answered",
        [("commit", "'ZREMRANGEBYSCORE', MAILBOX, id, id", "'DEL', MAILBOX")],
    ),
    Mutant(
        "every turn is given up",
        "a turn is given up after the third try",
        breaks=broken_bots.despairing,
    ),
    Mutant(
        "an answer is appended twice",
        "an answer is remembered once",
        [
            (
                "commit",
                _APPENDED,
                "for i = 1, 2 * #messages - 1 do local message = messages[math.min(i, #messages)]",
            )
        ],
    ),
    Mutant(
        "a turn takes updates of several people",
        "a turn is one sender's messages or one command",
        [(_BEGINNING, " or sender ~= first_sender", "")],
        since=15,
    ),
    Mutant(
        "a turn that begins again takes messages that came late",
        "only quick messages join a turn",
        [("acquire", "or arrived >= until_ms then", "then")],
        acts="text",
        often="pause",
        alone=True,
        since=462,
    ),
    Mutant(
        "an edit leaves the turn to the worker that has read the old words",
        "no send begins after a clear",
        [("edit_entry", "redis.call('DEL', LEASE)", "")],
        acts="text edit",
        since=39,
    ),
    Mutant(
        "a question that is answered again stays in the history",
        "what was answered is remembered once",
        [("revise", "= erase_messages(wanted.messages)", "= 0, 0")],
        since=13,
    ),
    Mutant(
        "an edit of an answered message is ignored",
        "an edit changes the history",
        breaks=broken_bots.stubborn,
    ),
    Mutant(
        "a reply that replaces another is sent below it",
        "a replaced reply leaves the chat",
        breaks=broken_bots.appending,
        since=21,
    ),
    Mutant(
        "a stop marks nothing",
        "a stopped turn gets no answer",
        [("stop", "redis.call('HSET', TURN, 'stopped', 1)", "")],
        since=133,
    ),
    Mutant(
        "an erased question may be asked again",
        "no send begins after a clear",
        [("revise", "if #redis.call('XRANGE', LOG, id, id) == 0 then", "if false then")],
        breaks=broken_bots.overtaken,
        acts="text retry",
        since=70,
    ),
    Mutant("nothing is ever learned", "everything finishes", breaks=broken_bots.never_learning),
    Mutant(
        "learning reports that it is done but stores nothing",
        "what is remembered is learned",
        breaks=broken_bots.falsely_learning,
    ),
    Mutant(
        "a reminder stays open when it was sent",
        "a reminder is sent once",
        breaks=broken_bots.repeating,
        reminds=True,
    ),
    Mutant(
        "several workers take one reminder",
        "one worker has a reminder",
        [("take_work", "if tonumber(held_until) > now then", "if false then")],
        reminds=True,
    ),
)
