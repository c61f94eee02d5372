"""Dead letters are listed and put back, and every erasure finds them."""

import pytest

from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.dead_letters import MAX_LETTERS
from memory.queue.open_turn import NoTurn, OpenTurn
from memory.scopes.log import Cursor
from memory.scopes.stats import count_conversation
from memory.store.errors import LeaseLost, StoreFull
from memory.store.keys import Scope
from tests.memory.clients import full_redis
from tests.memory.conftest import ON_A_SERVER
from tests.memory.turns import (
    ANN,
    BOB,
    GROUP,
    HERE,
    begin,
    carry_out,
    clear,
    close,
    exchange,
    put,
    take,
    texts,
)
from tests.stored import everything_stored

SORRY = b"[]"


async def set_aside(
    memory: Memory, update_id: int, conversation: Scope = HERE, *, sender: int = ANN
) -> OpenTurn:
    """Store a message, set its turn aside and close the turn."""
    turn = await begin(memory, update_id, conversation, sender=sender)
    await memory.dead_letters.set_aside(turn, "ValueError", SORRY)
    await memory.turns.commit(turn, [], Cursor())
    return turn


async def listed(memory: Memory) -> list[tuple[str, str, str]]:
    found = await memory.dead_letters.listed()
    return [(letter.conversation.tag, letter.id, letter.error) for letter in found]


async def test_setting_aside_writes_the_outbox_and_may_be_repeated(memory: Memory) -> None:
    turn = await begin(memory, 1)
    for _ in range(2):
        await memory.dead_letters.set_aside(turn, "ValueError", SORRY)
    await memory.turns.hand_over(turn.lease)
    again = await take(memory)
    assert (again.id, again.outbox, again.sending) == ("1", SORRY, 0)
    assert await listed(memory) == [(HERE.tag, "1", "ValueError")]


@ON_A_SERVER
async def test_on_a_full_redis_nothing_is_set_aside_that_no_listing_shows(memory: Memory) -> None:
    turn = await begin(memory, 1)
    async with full_redis(memory.client):
        with pytest.raises(StoreFull):
            await memory.dead_letters.set_aside(turn, "ValueError", SORRY)
    await memory.turns.hand_over(turn.lease)
    assert (await take(memory)).outbox == b""


async def test_a_call_that_comes_late_does_not_set_the_next_turn_aside(memory: Memory) -> None:
    first = await begin(memory, 1)
    await put(memory, 2)
    committed = await memory.turns.commit(first, [], Cursor())
    assert isinstance(committed.then, OpenTurn)
    with pytest.raises(LeaseLost):
        await memory.dead_letters.set_aside(first, "ValueError", SORRY)
    with pytest.raises(LeaseLost):
        await memory.turns.write_outbox(first, b"late")
    assert await listed(memory) == []
    await memory.turns.write_outbox(committed.then, b"reply")


async def test_a_turn_that_begins_again_after_an_erasure_is_no_dead_letter(memory: Memory) -> None:
    """It may be answered now, and then nobody should be able to ask for it once more."""
    await exchange(memory, 1)
    await put(memory, 2)
    await memory.dead_letters.set_aside(await take(memory), "ValueError", SORRY)
    await memory.forgetting.erase_messages(HERE, [1], "receipt")
    again = await take(memory)
    assert (again.id, again.outbox) == ("2", b"")
    assert await listed(memory) == []


async def test_messages_that_are_put_back_are_answered_once(memory: Memory) -> None:
    await set_aside(memory, 1)
    await exchange(memory, 2)
    assert await memory.dead_letters.retry(HERE, "1") == "begun"
    assert await memory.dead_letters.retry(HERE, "1") == "nothing"
    turn = await take(memory)
    assert (turn.id, turn.attempts, turn.failures, turn.outbox) == ("1", 1, 0, b"")
    committed = await close(memory, turn)
    assert committed.then == NoTurn("empty")
    assert await texts(memory) == ["text 2", "yes", "text 1", "yes"]
    assert await listed(memory) == []


async def test_a_letter_can_be_put_back_after_its_update_ids_were_forgotten(memory: Memory) -> None:
    await set_aside(memory, 1)
    await memory.client.call("DEL", memory.keys.scope(HERE).seen)
    await memory.dead_letters.retry(HERE, "1")
    assert (await take(memory)).id == "1"


async def test_a_letter_is_not_put_back_under_the_lease_of_its_turn(memory: Memory) -> None:
    """The commit would remove it, and later the new turn would count as closed already."""
    turn = await begin(memory, 1)
    await put(memory, 2, sender=BOB)
    await memory.dead_letters.set_aside(turn, "ValueError", SORRY)
    assert await memory.dead_letters.retry(HERE, "1") == "later"
    following = (await memory.turns.commit(turn, [], Cursor())).then
    assert isinstance(following, OpenTurn)
    assert await memory.dead_letters.retry(HERE, "1") == "later"
    await close(memory, following)
    assert await memory.dead_letters.retry(HERE, "1") == "begun"
    await close(memory, await take(memory))
    assert await texts(memory) == ["text 2", "yes", "text 1", "yes"]


async def test_all_messages_of_a_turn_become_one_letter(memory: Memory) -> None:
    await put(memory, 1)
    await put(memory, 2)
    await set_aside(memory, 3)
    assert await listed(memory) == [(HERE.tag, "1", "ValueError")]
    await memory.dead_letters.retry(HERE, "1")
    assert [entry.update_id for entry in (await take(memory)).entries] == [1, 2, 3]


async def test_a_clear_erases_letters_that_were_sent_before_it_and_counts_their_messages(
    memory: Memory, valkey: str
) -> None:
    await set_aside(memory, 9)
    await set_aside(memory, 2, GROUP)
    await set_aside(memory, 11)
    assert (await clear(memory, 10)).waiting == 1
    wanted = [(GROUP.tag, "2", "ValueError"), (HERE.tag, "11", "ValueError")]
    assert sorted(await listed(memory)) == wanted
    assert b"text 9" not in await everything_stored(valkey)
    # One that has waited for days is older, whatever its id: these begin again after a silent week.
    letters = memory.keys.scope(HERE).dead_letters
    await memory.client.call("HSET", letters, 11, f"1|ValueError|{ANN}")
    assert (await clear(memory, 10)).waiting == 1


async def test_forgetting_a_person_erases_only_their_letters(memory: Memory, valkey: str) -> None:
    await set_aside(memory, 1)
    await set_aside(memory, 2, GROUP)
    await set_aside(memory, 3, GROUP, sender=BOB)
    await carry_out(memory, Job("job", "forget", ANN, 10, 2_000.0, b""))
    assert await listed(memory) == [(GROUP.tag, "3", "ValueError")]
    stored = await everything_stored(valkey)
    assert (b"text 1" in stored, b"text 2" in stored, b"text 3" in stored) == (False, False, True)


async def test_the_index_holds_only_ids_and_letters_expire_with_their_conversation(
    memory: Memory,
) -> None:
    await set_aside(memory, 1)
    assert await memory.client.call("ZRANGE", memory.keys.dead_letters, 0, -1) == [b"c:7:0|1"]
    assert 0 < await memory.client.call("TTL", memory.keys.scope(HERE).dead_letters) <= 86_400


async def test_a_conversation_keeps_only_its_newest_letters(memory: Memory) -> None:
    for update_id in range(1, MAX_LETTERS + 3):
        await set_aside(memory, update_id)
    dead = memory.keys.scope(HERE).dead_letters
    found = {id_.decode() for id_ in await memory.client.call("HKEYS", dead) if b":" not in id_}
    assert len(found) == MAX_LETTERS
    assert str(MAX_LETTERS + 2) in found


async def test_a_letter_has_a_time_and_changes_no_count_of_its_conversation(memory: Memory) -> None:
    await set_aside(memory, 1)
    [letter] = await memory.dead_letters.listed()
    assert abs(await memory.client.server_time() - letter.at) < 60
    stats = await count_conversation(memory.store, HERE)
    assert (stats.messages, stats.waiting) == (0, 0)


async def test_the_index_forgets_expired_letters_even_if_nobody_looks(memory: Memory) -> None:
    await set_aside(memory, 1)
    await memory.client.call("ZADD", memory.keys.dead_letters, 1_000, f"{HERE.tag}|0")
    await memory.sweep.prune()
    index = await memory.client.call("ZRANGE", memory.keys.dead_letters, 0, -1)
    assert index == [f"{HERE.tag}|1".encode()]
