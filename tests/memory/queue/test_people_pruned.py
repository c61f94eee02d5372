"""The list of a person's conversations ends with them, and no earlier."""

from memory.memory import Memory
from tests.memory.turns import ANN, BOB, GROUP, HERE, exchange


async def test_an_expired_conversation_leaves_the_index_of_its_people(memory: Memory) -> None:
    wrote = ((HERE, ANN), (GROUP, ANN), (GROUP, BOB))
    for number, (conversation, sender) in enumerate(wrote, start=1):
        await exchange(memory, number, conversation, sender=sender)
    await memory.client.call("HSET", memory.keys.person(ANN), "c:99:0", "written without an update")
    assert await memory.sweep.prune_people() == 1
    assert await tags(memory, ANN) == {HERE.tag, GROUP.tag}

    # Redis drops the keys, and the sweep the index. One of both is not enough.
    for key in memory.keys.scope(HERE):
        await memory.client.call("DEL", key)
    assert await memory.sweep.prune_people() == 0
    await memory.client.call("ZREM", memory.keys.index_of(HERE), HERE.tag)
    assert await memory.sweep.prune_people() == 1
    assert (await tags(memory, ANN), await tags(memory, BOB)) == ({GROUP.tag}, {GROUP.tag})

    for key in memory.keys.scope(GROUP):
        await memory.client.call("DEL", key)
    await memory.client.call("ZREM", memory.keys.index_of(GROUP), GROUP.tag)
    assert await memory.sweep.prune_people() == 2
    assert await memory.client.call("EXISTS", memory.keys.person(ANN)) == 0
    assert await memory.client.call("EXISTS", memory.keys.person(BOB)) == 0


async def tags(memory: Memory, person: int) -> set[str]:
    return {tag.decode() for tag in await memory.client.call("HKEYS", memory.keys.person(person))}
