"""A short month, and what its audit finds."""

import pytest

from memory.store.client import RedisClient
from memory.store.keys import Keys, Scope
from tests.lab.month import __main__ as month
from tests.lab.month.audit import audit
from tests.lab.month.people import Place

BOT = 42
HERE = Place(3)
META = Keys(BOT).scope(Scope.of_chat(HERE.id)).meta


@pytest.mark.parametrize(
    ("command", "complaint"),
    [
        (("SET", META, "said", "EX", 900), {}),
        (("SET", META, "said"), {"meta never expires": 1}),
        (("SET", META, "said", "EX", 9_000), {"meta expires too late": 1}),
        (("HSET", Keys(BOT).due, "c:1:0", 1), {}),
        (("SET", Keys(BOT).scope(Scope("c:9:0")).log, "a", "EX", 9), {"log of nobody": 1}),
        (("SET", "r:7:due", "a"), {"a key of another bot": 1}),
        (("SET", META, f"The {HERE.words[0]}.", "EX", 9), {"a forgotten word in meta": 1}),
    ],
)
async def test_the_audit_finds_what_should_not_be_there(
    store: RedisClient, command: tuple[str | int, ...], complaint: dict[str, int]
) -> None:
    await store.call(*command)
    found = await audit(store, BOT, HERE.scopes, HERE.words, 1_000)
    assert found.complaints == complaint


def test_answers_out_of_order_are_counted() -> None:
    place = Place(
        1, said={"m1": "text", "m2": "text", "m3": "text"}, order=["m1", "m3", "m2", "m2"]
    )
    place.answered.update(place.order)
    assert (place.disorder(), place.missing()) == (1, [])


def test_a_reminder_is_missing_only_if_the_bot_has_answered_the_wish() -> None:
    place = Place(0)
    place.due["r1"], place.said["m1"] = 0.0, "reminder"
    assert place.reminders_missing(until=1.0) == []
    place.answered["m1"] = 1
    assert place.reminders_missing(until=1.0) == ["reminder"]


@pytest.mark.trial
@pytest.mark.usefixtures("launcher")
@pytest.mark.timeout(600)
async def test_a_short_month_breaks_no_promise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(month, "WORKERS", 1)
    monkeypatch.setattr(month, "_QUIET_S", 1)
    monkeypatch.setattr(month, "STRIKES", ("kill a worker", "backup"))
    report = await month.run(month.Size(chats=20, turns=24, days=2, seconds=500))
    assert report["complaints"] == {}
    assert report["struck"] == ["kill a worker", "backup"]
    assert report["turns"] == 24
