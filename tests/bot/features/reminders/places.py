"""Writes `places.txt` of the reminders anew, from the names that babel has of CLDR.

python -m tests.bot.features.reminders.places
"""

import pickle
import zoneinfo
from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from zoneinfo import ZoneInfo, available_timezones

from babel import localedata
from babel.core import get_global

from bot.features.reminders import time_zone
from bot.features.reminders.time_zone import AMBIGUOUS, folded

_SCRIPT_CHARS = 4


def places() -> str:
    """Return the text of the file, for the zones of the package `tzdata`."""
    lines: dict[str, list[str]] = {}
    zoneinfo.reset_tzpath(())
    for name, zone in _zones_by_name().items():
        lines.setdefault(zone, []).append(name)
    zoneinfo.reset_tzpath()
    return "".join(f"{zone}|{'|'.join(sorted(lines[zone]))}|\n" for zone in sorted(lines))


def _zones_by_name() -> dict[str, str]:
    """Return the zone of each name. A name of places with different clocks is left out."""
    cities: dict[str, set[str]] = {}
    countries: dict[str, set[str]] = {}
    in_country = {
        country: _canonical(zones) for country, zones in get_global("territory_zones").items()
    }
    for file in _files():
        with file.open("rb") as opened:  # babel itself would keep 130 MB of all of them
            names = pickle.load(opened)  # noqa: S301 - a file of the package
        for zone, spelled in names["time_zones"].items():
            if (city := spelled.get("city")) and not zone.startswith("Antarctica/"):
                cities.setdefault(folded(city), set()).update(_canonical([zone]))
        for country, name in names["territories"].items():
            if country.isalpha():
                countries.setdefault(folded(name), set()).update(in_country.get(country, ()))
    named = {**countries, **cities}
    return {
        name: zone
        for name, zones in named.items()
        if name not in AMBIGUOUS and (zone := _only(zones))
    }


def _files() -> Iterator[Path]:
    """Yield the files in which CLDR names places, one for each language and script."""
    for locale in localedata.locale_identifiers():
        _, _, script = locale.partition("_")
        if not script or len(script) == _SCRIPT_CHARS:
            yield Path(localedata.resolve_locale_filename(locale))


def _canonical(zones: Iterable[str]) -> set[str]:
    aliases = get_global("zone_aliases")
    return {aliases.get(each, each) for each in zones} & _known()


@cache
def _known() -> AbstractSet[str]:
    return available_timezones()  # which walks through all files of the database


def _only(zones: set[str]) -> str:
    """Return one of the zones if their clocks will always agree, else ""."""
    return min(zones) if len({_clock(each) for each in zones}) == 1 else ""


@cache
def _clock(zone: str) -> tuple[timedelta | None, ...]:
    """Return what a clock differs from UTC in each week of a year to which only rules apply."""
    first = datetime(2100, 1, 1, tzinfo=UTC)
    weeks = (first + timedelta(weeks=week) for week in range(52))
    return tuple(each.astimezone(ZoneInfo(zone)).utcoffset() for each in weeks)


if __name__ == "__main__":
    time_zone._PLACES.write_text(places(), "utf-8")
