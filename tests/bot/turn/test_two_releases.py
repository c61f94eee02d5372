"""Workers of two releases run at once: the older one leaves alone what it cannot read."""

from dataclasses import astuple, replace

import orjson
import pytest
from structlog.testing import capture_logs

from bot.telegram.chat import Destination
from bot.telegram.edits import edited_entry
from bot.telegram.updates import Replaced, Sender, from_bytes, to_bytes
from bot.turn.outbox import Outbox
from bot.turn.permits import Permits
from bot.turn.worker import TurnWorker
from memory.memory import Memory
from memory.message import Message
from memory.queue import open_turn
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Committed, NewerValue, NoTurn, OpenTurn
from memory.queue.ready_queue import WakeUp
from memory.scopes.log import Cursor
from tests.bot.telegram import raw
from tests.memory.turns import ANN, HERE, exchange_of, take

HELLO = raw.inbound(raw.message("hello"))
OUTBOX = Outbox(Destination(7), ())
NEWER = open_turn.FORMAT + 1
MAX_TRIES = 4


def worker(memory: Memory) -> TurnWorker:
    """Return a worker that closes each turn as soon as it has read it."""

    async def run(turn: OpenTurn) -> Committed:
        assert from_bytes(turn.entries[0].body).text == "hello"
        assert not turn.outbox or Outbox.from_bytes(turn.outbox) == OUTBOX
        return await memory.turns.commit(turn, exchange_of(turn), Cursor())

    permits = Permits(4, memory.mailbox.wake)
    return TurnWorker(memory.ready_queue(), memory.turns, memory.histories, permits, run, 1)


@pytest.mark.parametrize("newer", ["message", "reply"])
async def test_an_older_worker_gives_back_what_a_newer_one_then_answers(
    memory: Memory, monkeypatch: pytest.MonkeyPatch, newer: str
) -> None:
    """However often the older one meets it, no attempt counts, and the log says it once."""
    if newer == "message":
        monkeypatch.setattr(open_turn, "FORMAT", NEWER)
    await memory.mailbox.put(HERE, Entry(1, ANN, is_alone=False, body=to_bytes(HELLO)))
    monkeypatch.setattr(open_turn, "FORMAT", NEWER)
    if newer == "reply":
        turn = await take(memory)
        await memory.turns.write_outbox(turn, OUTBOX.to_bytes())
        await memory.turns.hand_over(turn.lease)
    monkeypatch.setattr(open_turn, "FORMAT", NEWER - 1)
    older, keys = worker(memory), memory.keys.scope(HERE)
    wake_up = WakeUp(b"1-0", HERE.tag, 1)
    with capture_logs() as logs:
        for _ in range(MAX_TRIES):
            assert await older.run_turns(wake_up) == NoTurn("deferred")
            assert await memory.client.call("EXISTS", keys.lease) == 0
            assert await memory.client.call("ZSCORE", memory.keys.due, HERE.tag)
            assert await memory.client.call("HGET", keys.turn, "failures") is None
    [line] = [each for each in logs if each["event"] == "turn of a newer release given back"]
    assert line["version"] == NEWER
    monkeypatch.setattr(open_turn, "FORMAT", NEWER)
    assert await worker(memory).run_turns(wake_up) == NoTurn("empty")
    assert await memory.client.call("ZCARD", keys.mailbox) == 0


def test_a_newer_release_reads_what_was_stored_before_and_an_older_one_refuses_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    packed, reply = to_bytes(HELLO), OUTBOX.to_bytes()
    assert packed[:1] + reply[:1] == b"[["
    monkeypatch.setattr(open_turn, "FORMAT", 7)
    assert from_bytes(packed) == from_bytes(to_bytes(HELLO)) == HELLO
    assert Outbox.from_bytes(reply) == Outbox.from_bytes(OUTBOX.to_bytes()) == OUTBOX
    later = to_bytes(HELLO)
    monkeypatch.setattr(open_turn, "FORMAT", 6)
    with pytest.raises(NewerValue):
        from_bytes(later)
    edit = replace(HELLO, kind="edit", text="hullo", edited_at=HELLO.sent_at + 1)
    assert edited_entry(edit, later) is None
    assert edited_entry(edit, packed)


def test_an_older_release_reads_what_a_newer_one_has_added_nothing_to_and_leaves_the_rest() -> None:
    question = (Message(3, 2, "user", "hi", 1.0, message_ids=(11,)),)
    asked = replace(HELLO, sender=Sender(7, "Ann"), replaced=Replaced(question, (20,), (3,)))
    packed = to_bytes(asked)
    assert b'[7,"Ann"]' in packed
    assert b'[[[3,2,"user","hi",1.0,0,"",[11]]],[20],[3]]' in packed
    newer = orjson.loads(orjson.dumps(astuple(asked)))
    replaced = newer[asked.__match_args__.index("replaced")]
    for each in (newer[6], replaced, replaced[0][0], newer):
        each.append("new")
    assert from_bytes(packed) == from_bytes(orjson.dumps(newer)) == asked
