"""What a process has read of a scope is never replaced by an older answer of Redis."""

from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.delta import Delta
from memory.scopes.fields import Watermark
from tests.memory.turns import HERE


async def test_an_answer_that_was_overtaken_does_not_bring_old_fields_back(memory: Memory) -> None:
    """A turn and the learner read one scope over two connections, and share what they have read."""
    scopes = memory.scopes
    await scopes.write(await scopes.read(HERE), Write(fields=[Watermark("facts", 1)]))
    keys = memory.keys.scope(HERE).of_records
    older = await memory.scripts["read_scope"](keys, {"cursor": {}, "max": 10})
    await scopes.write(await scopes.read(HERE), Write(fields=[Watermark("facts", 2)]))
    assert (await scopes.read(HERE)).watermark("facts") == 2
    assert scopes.join(HERE, Delta.of(older), 10).watermark("facts") == 2
    assert (await scopes.read(HERE)).watermark("facts") == 2
