"""When reminders are due, also on the days on which clocks change."""

from contextlib import suppress
from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.features.reminders.time_zone import AMBIGUOUS, find_zone, zone_of_shared
from memory.work.item import UnusableTime, WorkItem, due_at, has_offset, next_due


def local(at: str, zone: str) -> float:
    return datetime.fromisoformat(at).replace(tzinfo=ZoneInfo(zone)).timestamp()


def coming(rule: str, zone: str, after: str, count: int) -> list[str]:
    """Return the next moments of a rule as local times with their offset."""
    at, found = local(after, zone), []
    for _ in range(count):
        at = next_due(rule, zone, at)
        found.append(datetime.fromtimestamp(at, ZoneInfo(zone)).isoformat(timespec="minutes"))
    return found


@pytest.mark.parametrize(
    ("zone", "hour", "day_before", "expected"),
    [
        ("Europe/Berlin", 2, "2027-03-27", "2027-03-28T03:00+02:00 2027-03-29T02:30+02:00"),
        ("America/New_York", 2, "2027-03-13", "2027-03-14T03:00-04:00 2027-03-15T02:30-04:00"),
        # Iran had no summer time again after 2022.
        ("Asia/Tehran", 2, "2027-03-21", "2027-03-22T02:30+03:30 2027-03-23T02:30+03:30"),
        ("Europe/Berlin", 2, "2027-10-30", "2027-10-31T02:30+02:00 2027-11-01T02:30+01:00"),
        ("America/New_York", 1, "2027-11-06", "2027-11-07T01:30-04:00 2027-11-08T01:30-05:00"),
        ("Asia/Tehran", 2, "2027-09-21", "2027-09-22T02:30+03:30 2027-09-23T02:30+03:30"),
    ],
)
def test_a_daily_time_that_clocks_skip_comes_after_the_gap_and_one_that_comes_twice_counts_once(
    zone: str, hour: int, day_before: str, expected: str
) -> None:
    assert coming(f"30 {hour} * * *", zone, f"{day_before}T12:00", 2) == expected.split()


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Asia/Tehran"])
def test_nine_in_the_morning_is_nine_on_every_day_of_a_year(zone: str) -> None:
    days = coming("0 9 * * *", zone, "2027-01-01T12:00", 365)
    assert {day[11:16] for day in days} == {"09:00"}
    assert len({day[:10] for day in days}) == 365


@pytest.mark.parametrize("rule", ["30 2 * * *", "30 * * * *", "30 1-3 * * *", "30 2 * * 0#1,0#5"])
def test_what_is_done_late_in_the_hour_that_comes_twice_is_not_due_again_at_once(rule: str) -> None:
    night = local("2027-10-31T00:00", "Europe/Berlin")
    for now in range(int(night), int(night) + 6 * 3600, 300):
        assert next_due(rule, "Europe/Berlin", now) > now


def test_a_task_of_a_closed_chat_is_tried_after_ever_longer_times_for_a_month() -> None:
    task = WorkItem(7, "", rule="0 * * * *", zone="UTC", due=3600.0, is_task=True)
    hours = list[int]()
    while task.is_task:
        hours.append(int(task.due / 3600))
        task = task.after_closed(task.due + 1)
    assert hours == [1, 2, 4, 8, 16, *range(32, 733, 25)]


def test_a_time_that_clocks_skip_is_as_much_later_and_of_two_equal_ones_the_first_counts() -> None:
    assert due_at("2027-03-28T02:30", "Europe/Berlin") == due_at("2027-03-28T01:30", "UTC")
    assert due_at("2027-10-31T02:30", "Europe/Berlin") == due_at("2027-10-31T00:30", "UTC")
    assert due_at("2027-03-28T02:30+05:00", "Europe/Berlin") == due_at("2027-03-27T21:30", "UTC")
    assert (has_offset("2027-03-28T02:30"), has_offset("2027-03-28T02:30Z")) == (False, True)


@pytest.mark.parametrize(
    "rule",
    [
        *("*/5 9 * * *", "0,30 9 * * *", "* * * * *", "0 0 9 * * *", "0 0 30 2 *", "soon"),
        *("0 9 * * 1" + " " * 64, "", "0 9 * *"),
    ],
)
def test_a_rule_comes_hourly_at_most_and_has_five_fields(rule: str) -> None:
    with pytest.raises(UnusableTime):
        next_due(rule, "UTC", 0)


def test_a_reminder_is_due_later_than_now_and_within_five_years() -> None:
    item = WorkItem(1, "call Ida", at="2027-01-01T00:00Z")
    due = due_at(item.at, "UTC")
    assert item.first_due("UTC", now=due - 1) == due
    for now, why in ((due, "passed"), (due - 6 * 366 * 86_400, "five years")):
        with pytest.raises(UnusableTime, match=why):
            item.first_due("UTC", now)


@given(st.text(max_size=80))
def test_whatever_a_model_writes_is_a_time_or_an_error_that_says_so(text: str) -> None:
    with suppress(UnusableTime):
        due_at(text, "UTC")
    with suppress(UnusableTime):
        next_due(text, "UTC", 0)
    assert find_zone(text) == find_zone(find_zone(text) or text)


def test_a_zone_is_found_by_its_name_a_city_or_a_place() -> None:
    berlin = "Europe/Berlin"
    zones = {berlin: berlin, " berlin ": berlin, "New York": "America/New_York"}
    zones |= {"35.7, 51.4": "Asia/Tehran", "utc": "UTC", "91, 0": "", "../UTC": "", "Factory": ""}
    assert {name: find_zone(name) for name in zones} == zones
    assert "localtime" in AMBIGUOUS
    assert zone_of_shared("📍 52.5200, 13.4050 (±20 m)") == berlin
    assert zone_of_shared("I am at 52.5200, 13.4050") == ""
