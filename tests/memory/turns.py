"""Short ways to store a message, take a turn, close it, and carry out a job."""

from collections.abc import Mapping, Sequence
from time import time

from memory.erasure.jobs import FinishedJob, Job
from memory.memory import Memory
from memory.message import Message
from memory.queue.mailbox import Entry, Outcome
from memory.queue.open_turn import Closing, Committed, OpenTurn
from memory.scopes.changes import Receipt
from memory.scopes.history import ChatHistory
from memory.scopes.log import Cursor
from memory.store.keys import Scope

HERE = Scope.of_chat(7)
GROUP = Scope.of_chat(-7)
ANN, BOB = 7, 8
ANNS = Scope.of_person(ANN)


async def put(
    memory: Memory, update_id: int, conversation: Scope = HERE, *, sender: int = ANN
) -> Outcome:
    entry = Entry(update_id, sender, is_alone=False, body=f"text {update_id}".encode())
    return await memory.mailbox.put(conversation, entry)


async def take(memory: Memory, conversation: Scope = HERE) -> OpenTurn:
    turn = await memory.turns.acquire(conversation, Cursor())
    assert isinstance(turn, OpenTurn)
    return turn


async def turn_of(memory: Memory, update_id: int, conversation: Scope = HERE) -> OpenTurn:
    """Begin a turn as a worker does: what this process knows is not read again."""
    await put(memory, update_id, conversation)
    turn = await memory.turns.acquire(conversation, memory.histories.cursor(conversation))
    assert isinstance(turn, OpenTurn)
    return turn


async def read_by(memory: Memory, turn: OpenTurn) -> ChatHistory:
    here = turn.lease.conversation
    return await ChatHistory.of_turn(memory.histories, here, turn.loaded, turn.facts)


async def history_of(memory: Memory, conversation: Scope = HERE) -> ChatHistory:
    """Return a history as it is read outside a turn."""
    return await ChatHistory.read(memory.histories, conversation)


def exchange_of(turn: OpenTurn, answer: str = "yes") -> list[Message]:
    said = " ".join(entry.body.decode() for entry in turn.entries)
    asker = turn.entries[0].sender_id
    return [
        Message(0, 0, "user", said, 1_000.0, asker, "Ann", (1,), 3),
        Message(0, 0, "assistant", answer, 1_001.0, tokens=1),
    ]


async def store(memory: Memory, said: Sequence[Message], conversation: Scope = HERE) -> None:
    """Store messages in one turn, whatever each of them is."""
    await finish(memory, await begin(memory, 1, conversation), said)


async def close(memory: Memory, turn: OpenTurn, answer: str = "yes") -> Committed:
    return await finish(memory, turn, exchange_of(turn, answer))


async def finish(
    memory: Memory, turn: OpenTurn, said: Sequence[Message], closing: Closing | None = None
) -> Committed:
    """Store a reply and commit these messages."""
    await memory.turns.write_outbox(turn, b"[]")
    return await memory.turns.commit(turn, said, Cursor(), closing=closing)


async def begin(
    memory: Memory, update_id: int, conversation: Scope = HERE, *, sender: int = ANN
) -> OpenTurn:
    await put(memory, update_id, conversation, sender=sender)
    return await take(memory, conversation)


async def exchange(
    memory: Memory, update_id: int, conversation: Scope = HERE, *, sender: int = ANN
) -> Committed:
    return await close(memory, await begin(memory, update_id, conversation, sender=sender))


async def carry_out(memory: Memory, job: Job) -> FinishedJob:
    """Start a job, unless it is started, and run it to its end."""
    await memory.jobs.start_job(job)
    finished = await memory.jobs.run_job(job.id)
    assert finished is not None
    return finished


async def forget_ann(memory: Memory) -> None:
    await carry_out(memory, Job("job", "forget", ANN, 999, time(), b""))


async def erase_all(memory: Memory) -> None:
    await carry_out(memory, Job("job", "all", 0, 999, time(), b""))


async def clear(memory: Memory, update_id: int = 10, conversation: Scope = HERE) -> Receipt:
    nonce = await memory.questions.ask(conversation, "clear", ANN)
    return await memory.forgetting.clear(conversation, nonce, ANN, update_id, as_admin=False)


async def texts(memory: Memory, conversation: Scope = HERE) -> list[str]:
    log = await memory.client.call("XRANGE", memory.keys.scope(conversation).log, "-", "+")
    return [fields[b"t"].decode() for _, fields in log]


async def end_pauses(memory: Memory, conversation: Scope = HERE) -> None:
    """Let the time pass that a conversation waits after failures."""
    learned = memory.keys.scope(conversation).learned
    for kind in ("batches", "vectors"):
        stored = await memory.client.call("HGET", learned, f"pause:{kind}")
        if stored is not None:
            failures, _, model = stored.decode().split("|", 2)
            await set_learned(memory, conversation, {f"pause:{kind}": f"{failures}|0|{model}"})


async def set_learned(
    memory: Memory, scope: Scope, fields: Mapping[str | bytes, str | bytes]
) -> None:
    """Set stored fields of what was learned, as another process would."""
    keys = memory.keys.scope(scope)
    flat = (each for pair in fields.items() for each in pair)
    await memory.client.call("HSET", keys.learned, *flat)
    await memory.client.call("HINCRBY", keys.meta, "revision", 1)
