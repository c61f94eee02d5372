"""How the prompt shows dates."""

import re
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.text.message_lines import dated

NOW = datetime(2025, 11, 12, 14, 5, tzinfo=UTC)
DAYS = {"days": 1, "weeks": 7, "months": 30, "years": 365}

moments = st.floats(0, 4_000_000_000)
zones = st.sampled_from([UTC, ZoneInfo("Asia/Tehran"), ZoneInfo("America/New_York")])


@pytest.mark.parametrize(
    ("ago", "expected"),
    [
        (timedelta(), "today, 14:05"),
        (timedelta(hours=14), "today, 00:05"),
        (timedelta(hours=15), "yesterday, 23:05"),
        (timedelta(days=2), "10 November 2025, 2 days ago"),
        (timedelta(days=13), "30 October 2025, 13 days ago"),
        (timedelta(days=14), "29 October 2025, 2 weeks ago"),
        (timedelta(days=45), "28 September 2025, 6 weeks ago"),
        (timedelta(days=46), "27 September 2025, 2 months ago"),
        (timedelta(days=245), "12 March 2025, 8 months ago"),
        (timedelta(days=700), "13 December 2023, 23 months ago"),
        (timedelta(days=730), "13 November 2023, 2 years ago"),
        (timedelta(days=-2), "14 November 2025"),
    ],
)
def test_a_date_is_shown_with_its_distance(ago: timedelta, expected: str) -> None:
    assert dated((NOW - ago).timestamp(), NOW.timestamp(), UTC) == expected


def test_a_day_ends_at_midnight_of_the_time_zone() -> None:
    said = datetime(2025, 11, 11, 20, 0, tzinfo=UTC).timestamp()
    assert dated(said, NOW.timestamp(), UTC) == "yesterday, 20:00"
    assert dated(said, NOW.timestamp(), timezone(timedelta(hours=5))) == "today, 01:00"


def days_ago(told: str) -> int:
    """Return the smallest number of days that a shown distance stands for."""
    if told.startswith("today"):
        return 0
    if told.startswith("yesterday"):
        return 1
    distance = re.search(r", (\d+) (\w+) ago$", told)
    return int(distance[1]) * DAYS[distance[2]] if distance else -1


@given(first=moments, second=moments, now=moments, zone=zones)
def test_earlier_is_never_nearer(first: float, second: float, now: float, zone: ZoneInfo) -> None:
    earlier, later = sorted((first, second))
    assert days_ago(dated(earlier, now, zone)) >= days_ago(dated(later, now, zone))


@given(sent_at=moments, now=moments, zone=zones)
def test_a_distance_is_at_least_two_of_its_unit(sent_at: float, now: float, zone: ZoneInfo) -> None:
    distance = re.search(r", (\d+) \w+ ago$", dated(sent_at, now, zone))
    assert distance is None or int(distance[1]) >= 2
