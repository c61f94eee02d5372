"""The access list: who asks, who is in, who was refused; and invitations that let people in."""

from dataclasses import replace

import pytest
from pydantic import SecretStr

from bot.features.access.access_list import MAX_ASKING, AccessList
from bot.features.access.probes import PROBES
from bot.telegram.admission import Admission, Members
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.memory.clients import InterruptedClient
from tests.memory.conftest import memory_of
from tests.memory.turns import take
from tests.settings import Settings

ADMIN, OTHER_ADMIN, ANNA, BEN = 1, 2, 1001, 1002
DAY_MS = 86_400_000


def access_of(memory: Memory) -> AccessList:
    return AccessList(memory.store, Members(memory.store))


async def test_asking_again_makes_no_request_and_the_first_decision_counts(memory: Memory) -> None:
    access = access_of(memory)
    outcomes = [await access.ask_in(ANNA, "Anna", "de") for _ in range(3)]
    assert outcomes == ["asked", "waiting", "waiting"]
    [asking] = await access.list_asking(untold=True)
    assert (asking.id, asking.name, asking.language) == (ANNA, "Anna", "de")
    await access.mark_told(ANNA)
    assert await access.list_asking(untold=True) == []
    first = await access.decide(ANNA, ADMIN, "admit")
    assert (first.is_new, first.is_in, first.language) == (True, True, "de")
    second = await access.decide(ANNA, OTHER_ADMIN, "refuse")
    assert (second.is_new, second.is_in, second.by) == (False, True, ADMIN)
    assert ANNA in access.members.admitted
    [admitted] = await access.list_admitted()
    assert (admitted.name, admitted.way, admitted.by) == ("Anna", "asked", ADMIN)
    assert not (await access.decide(BEN, ADMIN, "admit")).by
    assert BEN not in access.members.admitted


async def test_open_requests_are_bounded_and_the_refused_may_not_ask_again(memory: Memory) -> None:
    access = access_of(memory)
    for number in range(MAX_ASKING):
        await access.ask_in(number + 1, "somebody", "en")
    assert await access.ask_in(ANNA, "Anna", "en") == "full"
    await access.decide(1, ADMIN, "refuse")
    assert await access.ask_in(ANNA, "Anna", "en") == "asked"
    assert await access.ask_in(1, "somebody", "en") == "refused"
    await memory.client.call("HSET", memory.keys.access("asking"), ANNA, "1|en")  # it is old
    assert await access.ask_in(BEN, "Ben", "en") == "asked"


async def test_a_link_ends_with_its_time_its_uses_or_by_an_admin(memory: Memory) -> None:
    links = access_of(memory)
    code = await links.make_invitation(uses=2, days=1, by=ADMIN)
    for _ in range(2):
        assert await links.use_invitation(code, ANNA, "Anna")
    [open_link] = await links.list_invitations()
    assert open_link.left == 1  # who is in does not use it up
    assert not await links.use_invitation("x" * 22, BEN, "Ben")
    assert not await links.use_invitation("é" * 22, BEN, "Ben")
    await links.withdraw_invitation("")
    assert await links.list_invitations() == [open_link]
    await links.withdraw_invitation(open_link.id)
    assert not await links.use_invitation(code, BEN, "Ben")
    late = await links.make_invitation(uses=1, days=1, by=ADMIN)
    key = memory.keys.access("links")
    [link] = await memory.client.call("HKEYS", key)
    await memory.client.call("HSET", key, link, f"1|{DAY_MS}|1|{ADMIN}")
    assert not await links.use_invitation(late, BEN, "Ben")
    assert await links.list_invitations() == []


async def test_a_removed_person_comes_in_only_by_a_link_made_later(memory: Memory) -> None:
    links, access = access_of(memory), access_of(memory)
    old = await links.make_invitation(uses=5, days=1, by=ADMIN)
    assert await links.use_invitation(old, ANNA, "Anna")
    assert (await access.decide(ANNA, ADMIN, "remove")).is_new
    assert not (await access.decide(ANNA, ADMIN, "remove")).is_new
    assert not await links.use_invitation(old, ANNA, "Anna")
    assert await links.use_invitation(old, BEN, "Ben")
    while (await links.list_invitations())[0].made_at * 1000 <= await refused_at(memory):
        new = await links.make_invitation(uses=1, days=1, by=ADMIN)
    assert await links.use_invitation(new, ANNA, "Anna")
    assert ANNA not in links.members.refused


async def refused_at(memory: Memory) -> int:
    stored = await memory.client.call("HGET", memory.keys.access("refused"), ANNA)
    return int(stored.partition(b"|")[0])


async def test_another_process_learns_of_a_change_with_its_next_reading(memory: Memory) -> None:
    other, links = Members(memory.store), access_of(memory)
    await links.use_invitation(await links.make_invitation(uses=1, days=1, by=ADMIN), ANNA, "Anna")
    assert await links.list_invitations() == []  # it is used up
    assert ANNA not in other.admitted
    await other.refresh()
    assert ANNA in other.admitted
    round_trips = memory.client.round_trips
    await other.refresh()
    assert memory.client.round_trips == round_trips + 1
    await access_of(memory).decide(ANNA, ADMIN, "remove")
    await other.refresh()
    assert (set(other.admitted), other.removed, set(other.refused)) == (set(), {ANNA}, {ANNA})


async def test_a_slow_reading_does_not_undo_a_newer_one(interrupted: InterruptedClient) -> None:
    memory = memory_of(interrupted)
    access = access_of(memory)
    await access.admit_group(-5, "Club", ADMIN)
    await interrupted.call("INCR", memory.keys.access("version"))
    interrupted.behind["HKEYS"] = lambda: access.admit_group(-6, "Choir", ADMIN)
    await access.members.refresh()
    assert (set(access.members.admitted), access.members.removed) == ({-5, -6}, set())


@pytest.mark.parametrize("is_open", [False, True])
async def test_what_a_removed_person_has_waiting_is_dropped_and_their_turn_ends(
    memory: Memory, *, is_open: bool
) -> None:
    club = Scope.of_chat(-5)
    links = access_of(memory)
    await links.use_invitation(await links.make_invitation(uses=1, days=1, by=ADMIN), ANNA, "Anna")
    for number, sender in enumerate((ANNA, ANNA, BEN), 1):
        await memory.mailbox.put(
            club, Entry(number, sender, is_alone=False, body=b"{}", is_grouped=False)
        )
    turn = await take(memory, club) if is_open else None
    await access_of(memory).decide(ANNA, ADMIN, "remove")
    await Admission(Settings(access="ask"), links.members).drop_removed(memory.mailbox)
    if turn:
        with pytest.raises(LeaseLost):
            await memory.turns.write_outbox(turn, b"[]")
    left = await take(memory, club)
    assert [entry.sender_id for entry in left.entries] == [BEN]
    assert links.members.removed == set()


async def test_a_forgotten_person_leaves_a_number_and_no_name(memory: Memory) -> None:
    access, links = access_of(memory), access_of(memory)
    assert not await access.knows(ANNA)
    await access.ask_in(ANNA, "Anna", "en")
    assert await access.knows(ANNA)
    stored = await access.stored_of(ANNA)
    assert stored
    assert (stored["state"], stored["name"]) == ("asking", "Anna")
    forgotten = Job("job", "forget", ANNA, 1, 1.0, b"")
    await access.forget(replace(forgotten, kind="chat"))
    assert await access.knows(ANNA)
    await access.forget(forgotten)
    assert not await access.knows(ANNA)
    assert await access.list_asking(untold=True) == await access.list_asking() == []
    await links.use_invitation(await links.make_invitation(uses=1, days=1, by=ADMIN), ANNA, "Anna")
    await access.forget(forgotten)
    [admitted] = await access.list_admitted()
    assert (admitted.id, admitted.name, admitted.way) == (ANNA, "", "link")


async def test_a_group_that_an_admin_brings_is_in(memory: Memory) -> None:
    await access_of(memory).ask_in(-5, "Club", "en")
    await access_of(memory).admit_group(-5, "Club", ADMIN)
    [group] = await access_of(memory).list_admitted()
    assert (group.id, group.name, group.way, group.by) == (-5, "Club", "group", ADMIN)
    assert await access_of(memory).list_asking() == []


async def test_something_is_said_once_in_its_time_and_counted_by_the_hour(memory: Memory) -> None:
    assert await access_of(memory).may_tell("x", 60)
    assert not await access_of(memory).may_tell("x", 60)
    assert [await access_of(memory).count_this_hour("y") for _ in range(2)] == [1, 2]


@pytest.mark.parametrize(
    ("given", "verdict", "seen"),
    [
        ({}, "warn", "everybody, and your key pays"),
        ({"allowed_user_ids": "7"}, "ok", "people named in the settings: 1; groups: all"),
        ({"allowed_user_ids": "7", "access": "open"}, "warn", "ACCESS=open, but only the people"),
        ({"access": "ask"}, "warn", "ACCESS=ask, but there is no admin"),
        ({"access": "invite"}, "warn", "ACCESS=invite, but there is no admin"),
        ({"access": "Ask", "admin_user_ids": "1"}, "ok", ": 1, whom an admin lets in; groups: 0"),
        ({"access": "invite", "admin_user_ids": "1", "allowed_group_ids": "-5"}, "ok", "groups: 1"),
        ({"allowed_group_ids": "-5, -6"}, "warn", "in groups only in 2"),
    ],
)
async def test_the_row_says_who_may_use_the_bot_and_what_does_not_fit(
    given: dict[str, str], verdict: str, seen: str
) -> None:
    settings = Settings(telegram_bot_token=SecretStr("42:made_up"), **given)  # type: ignore[arg-type]
    [probe] = PROBES
    assert probe.is_needed(settings)
    [row] = [row async for row in probe.run(settings)]
    assert (row.verdict, seen in row.seen) == (verdict, True), row
