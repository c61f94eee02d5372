"""Protocols that are broken on purpose. The simulator can be trusted because it finds each one.

A mutant replaces a piece of a script's text, or breaks each bot that was built.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from tests.lab.simulator import broken_bots
from tests.lab.simulator.bot import SimulatedBot
from tests.lab.simulator.client import script_sources
from tests.lab.simulator.schedule import Protocol


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is broken, the promise that this breaks, and the broken protocol.

    `since` is the first seed to search. If few schedules reach the broken step, it lies shortly
    before a seed that does; a search from 0 would find one too, but would take longer.
    """

    what: str
    promise: str
    protocol: Callable[[], Protocol]
    since: int = 0


def _lua(*changes: tuple[str, str, str], often: str = "") -> Callable[[], Protocol]:
    """Return a protocol with changes of (scripts, old text, new text) and frequent faults."""

    def protocol() -> Protocol:
        texts = script_sources()
        changed: dict[str, str] = {}
        for scripts, old, new in changes:
            for script in scripts.split():
                text = changed.get(script, texts[script])
                assert old in text, f"{script} has no {old}"
                changed[script] = text.replace(old, new)
        return Protocol(changed, often=often.split())

    return protocol


def _bot(broken: Callable[[SimulatedBot], None]) -> Callable[[], Protocol]:
    """Return a protocol with a bot that was broken after it was built."""
    return lambda: Protocol(breaks=broken)


def _acting(
    protocol: Callable[[], Protocol], acts: str, often: str = "", **others: Any
) -> Callable[[], Protocol]:
    """Return a protocol whose people do only this, so that rare schedules are found sooner."""
    does, edits = acts.split(), "edit" in acts or "retry" in acts
    return lambda: replace(protocol(), acts=does, often=often.split(), edits=edits, **others)


def _reminding(protocol: Callable[[], Protocol]) -> Callable[[], Protocol]:
    return lambda: replace(protocol(), reminds=True)


_FENCE = "redis.call('GET', LEASE) ~= step.token or "
_STEPS = "outbox sending park renew commit set_aside failed"
_NOTED = "redis.call('ZADD', SEEN, 'NX', whole(now), update_id)"
_SEEN = f"if {_NOTED} == 0 then return outcome('duplicate') end"
_BEGINNING = "acquire commit"
_APPENDED = "for _, message in ipairs(messages) do"
_PUSHED = "redis.call('ZADD', MAILBOX, update_id, member)\n"
_GROWS = (
    "redis.call('HINCRBY', META, 'epoch', 1)\n  redis.call('HINCRBY', META, 'erasure', 1)\n",
    "if redis.call('DEL', LEASE) == 1 then signal() end\n  redis.call('DEL', TURN)\n",
)

MUTANTS = (
    Mutant(
        "the fence is not checked", "a lost lease is refused", _lua((_STEPS, _FENCE, "")), since=6
    ),
    Mutant(
        "duplicate updates are not recognised",
        "an update is accepted once",
        _lua(("intake", _SEEN, _NOTED)),
    ),
    Mutant(
        "an update is stored before duplicates are looked for",
        "an update is accepted once",
        _lua(("intake", _SEEN, _PUSHED + _SEEN)),
        since=27,
    ),
    Mutant(
        "wake-ups are acknowledged first", "waiting updates have a wake-up", _bot(broken_bots.hasty)
    ),
    Mutant(
        "a wake-up is removed although the holder has lost its own",
        "waiting updates have a wake-up",
        _acting(_lua(("ack", "if request.other then", "if false then")), "text", often="late"),
        since=35,
    ),
    Mutant(
        "intake does not check what a person had forgotten elsewhere",
        "forgotten messages are not accepted",
        _acting(
            _lua(("intake", "~= erasure then\n", "== '' then\n")),
            "text forget",
            often="late pause",
            alone=True,
        ),
        since=302,
    ),
    Mutant(
        "a forgetting drops the index although newer messages need it",
        "what is forgotten is gone",
        _acting(
            _lua(("drop_unless_newer", "if id and", "if false and")),
            "text forget",
            often="late",
            alone=True,
        ),
        since=137,
    ),
    Mutant(
        "a refused holder deletes what others count as sent",
        "every update is answered",
        _acting(
            _lua(
                ("sending commit", "return 'superseded' end", "return 'refused' end"),
                ("sending commit", "and 'superseded' or", "and 'refused' or"),
            ),
            "text new",
            often="repeated pause late",
        ),
        since=179,
    ),
    Mutant("storing a reply raises an error", "every error is expected", _bot(broken_bots.clumsy)),
    Mutant("no outbox is stored", "a turn has one reply", _bot(broken_bots.forgetful), since=116),
    Mutant(
        "a clear raises neither epoch nor erasure and leaves the lease",
        "no send begins after a clear",
        _acting(_lua(("clear", _GROWS[0], ""), ("clear", _GROWS[1], "")), "text clear"),
        since=105,
    ),
    Mutant(
        "a confirmation can be used twice",
        "a replayed confirmation erases nothing",
        _lua(("clear", "ask({[id] = 'done|' .. receipt .. (asked and '|' .. asked or '')})", "")),
        since=31,
    ),
    Mutant(
        "late updates from before a clear are accepted",
        "nothing from before a clear is accepted",
        _acting(
            _lua(("intake", "if is_cut_off(cut_update, cut_at) or", "if false and")),
            "text clear",
            often="late",
        ),
        since=16,
    ),
    Mutant(
        "learning does not check for erasures",
        "no vector of an erased message",
        _lua(
            ("learn_vectors", "epoch ~= request.epoch or erasure ~= request.erasure", "false"),
            often="hangs",
        ),
        since=57,
    ),
    Mutant(
        "forgetting a person leaves the lease and raises nothing",
        "no send begins after a clear",
        _acting(
            _lua(
                ("erase_person revise", "if redis.call('DEL', LEASE) == 1 then signal() end\n", ""),
                ("erase_person revise", "redis.call('HINCRBY', META, 'erasure', 1)\n", ""),
            ),
            "text delete_message",
            often="late",
            alone=True,
        ),
        since=236,
    ),
    Mutant(
        "the newest updates are taken first",
        "updates are answered in order",
        _lua((_BEGINNING, "MAX_ENTRIES - 1)", "MAX_ENTRIES - 1, 'REV')")),
    ),
    Mutant(
        "a commit takes everything that waits",
        "every update is answered",
        _lua(("commit", "'ZREMRANGEBYSCORE', MAILBOX, id, id", "'DEL', MAILBOX")),
    ),
    Mutant(
        "every turn is given up",
        "a turn is given up after the third try",
        _bot(broken_bots.despairing),
    ),
    Mutant(
        "giving up sends no notice", "every update is answered", _bot(broken_bots.silent), since=87
    ),
    Mutant(
        "after an unknown part nothing more is sent",
        "every update is answered",
        _bot(broken_bots.discouraged),
        since=19,
    ),
    Mutant(
        "an exchange is appended twice",
        "what was answered is remembered once",
        _lua(
            (
                "commit",
                _APPENDED,
                "for i = 0, 2 * #messages - 1 do local message = messages[i % #messages + 1]",
            )
        ),
    ),
    Mutant(
        "an answer is appended twice",
        "an answer is remembered once",
        _lua(
            (
                "commit",
                _APPENDED,
                "for i = 1, 2 * #messages - 1 do local message = messages[math.min(i, #messages)]",
            )
        ),
    ),
    Mutant(
        "no answer is appended",
        "an answer is remembered once",
        _lua(("commit", _APPENDED, "for _, message in ipairs({messages[1]}) do")),
        since=35,
    ),
    Mutant(
        "a turn takes updates of several people",
        "a turn is one sender's messages or one command",
        _lua((_BEGINNING, " or sender ~= first_sender", "")),
        since=15,
    ),
    Mutant(
        "a command is taken together with other updates",
        "a turn is one sender's messages or one command",
        _lua((_BEGINNING, "first_kind == 'c' or kind == 'c' or ", "")),
    ),
    Mutant(
        "quick messages are answered one by one",
        "a turn is one sender's messages or one command",
        _lua((_BEGINNING, "#entries > 0 and (", "#entries > 0 and (true or ")),
        since=10,
    ),
    Mutant(
        "a turn that begins again takes messages that came late",
        "only quick messages join a turn",
        _acting(
            _lua(("acquire", "or arrived >= until_ms then", "then")),
            "text",
            often="pause",
            alone=True,
        ),
        since=462,
    ),
    Mutant(
        "a lease is handed over by a former holder",
        "a lost lease is refused",
        _lua(
            ("hand_over", "~= request.token then return 'refused'", "== '' then return 'refused'")
        ),
    ),
    Mutant(
        "an edit leaves the turn to the worker that has read the old words",
        "no send begins after a clear",
        _acting(_lua(("edit_entry", "redis.call('DEL', LEASE)", "")), "text edit"),
        since=39,
    ),
    Mutant(
        "an edit changes a message whose reply is stored",
        "no send begins after a clear",
        _acting(
            _lua(("edit_entry", "redis.call('HEXISTS', TURN, 'outbox') == 1", "false")),
            "text edit",
            often="pause",
        ),
        since=35,
    ),
    Mutant(
        "a part that the history counts is deleted",
        "every update is answered",
        _acting(
            _lua(("sending", "if last and counts_in_history(last) then", "if false then")),
            "text text edit",
            often="pause repeated",
            alone=True,
        ),
        since=735,
    ),
    Mutant(
        "a question that is answered again stays in the history",
        "what was answered is remembered once",
        _lua(("revise", "= erase_messages(wanted.messages)", "= 0, 0")),
        since=13,
    ),
    Mutant(
        "an edit of an answered message is ignored",
        "an edit changes the history",
        _bot(broken_bots.stubborn),
    ),
    Mutant(
        "a reply that replaces another is sent below it",
        "a replaced reply leaves the chat",
        _bot(broken_bots.appending),
        since=21,
    ),
    Mutant(
        "a stop marks nothing",
        "a stopped turn gets no answer",
        _lua(("stop", "redis.call('HSET', TURN, 'stopped', 1)", "")),
        since=133,
    ),
    Mutant(
        "the outbox does not look for a stop",
        "a stopped turn gets no answer",
        _lua(
            ("outbox", "if why then return why end", ""),
            ("renew", "return interruption(request) or 'ok'", "return 'ok'"),
        ),
        since=158,
    ),
    Mutant(
        "an erased question may be asked again",
        "no send begins after a clear",
        _acting(
            _lua(("revise", "if #redis.call('XRANGE', LOG, id, id) == 0 then", "if false then")),
            "text retry",
            breaks=broken_bots.overtaken,
        ),
        since=70,
    ),
    Mutant("nothing is ever learned", "everything finishes", _bot(broken_bots.never_learning)),
    Mutant(
        "learning reports that it is done but stores nothing",
        "what is remembered is learned",
        _bot(broken_bots.falsely_learning),
    ),
    Mutant(
        "a reminder stays open when it was sent",
        "a reminder is sent once",
        _reminding(_bot(broken_bots.repeating)),
    ),
    Mutant(
        "several workers take one reminder",
        "one worker has a reminder",
        _reminding(_lua(("take_work", "if tonumber(held_until) > now then", "if false then"))),
    ),
    Mutant(
        "a clear leaves the reminders",
        "no send begins after a clear",
        _reminding(_lua(("clear", "LOG, VEC, WORK)", "LOG, VEC)"))),
        since=87,
    ),
    Mutant(
        "a repeated close begins the turn of a task again",
        "an update is accepted once",
        _reminding(_lua(("close_work", "token ~= request.token", "not stored"))),
        since=2_430,
    ),
    Mutant(
        "an erasure leaves the turns of tasks that began before its job",
        "what is forgotten is gone",
        _reminding(_lua(("wipe", "== '-' then tasks", "== '+' then tasks"))),
        since=426,
    ),
    Mutant(
        "an erased task is answered",
        "no send begins after a clear",
        _acting(
            _reminding(_bot(broken_bots.obedient)),
            "text delete_message",
            often="pause hangs",
            alone=True,
        ),
        since=855,
    ),
)
