"""The time zone of a person: what they call it, and where they are.

It is stored in the person's scope, so that /forget erases it. Groups use it too.
"""

import asyncio
import re
from functools import cache
from zoneinfo import available_timezones

from bot.features.reminders.place_names import AMBIGUOUS, folded, zone_of_name
from memory.scopes.changes import Write
from memory.scopes.fields import PersonsZone
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

MAX_CHARS = 64
"""Characters of the name of a place."""
_CITY = re.compile(r"(Africa|America|Asia|Atlantic|Australia|Europe|Indian|Pacific)/[^/]+$")
_PLACE = re.compile(r"(-?\d{1,2}(?:\.\d{1,9})?) ?, ?(-?\d{1,3}(?:\.\d{1,9})?)", re.ASCII)
_OFFSET = re.compile(r"(?:utc|gmt)? ?([-+−–]) ?(\d{1,2})(?::?00)?", re.IGNORECASE | re.ASCII)
_SIGNS = str.maketrans("+-", "-+")
_SHARED = re.compile(r"📍 (-?[\d.]+, -?[\d.]+)(?: \(±\d+ m\))?", re.ASCII)


def find_zone(said: str) -> str:
    """Return the zone of an IANA name, its city, "UTC+3" or "latitude, longitude"; "" if none."""
    name = said.strip()[:MAX_CHARS]
    if place := _PLACE.fullmatch(name):
        return _zone_at(float(place[1]), float(place[2]))
    if offset := _OFFSET.fullmatch(name):
        # The sign in IANA's names is that of POSIX: Etc/GMT-3 is three hours ahead.
        sign = "+" if offset[1] in "-−–" else "-"
        name = f"Etc/GMT{sign}{int(offset[2])}"
    if folded(name) in AMBIGUOUS:
        return ""
    return _zones().get(name.casefold().replace(" ", "_"), "")


async def find_named_zone(said: str) -> str:
    """Return the zone that `find_zone` finds, else that of a city or country in any language."""
    name = said.strip()[:MAX_CHARS]
    return find_zone(name) or await asyncio.to_thread(zone_of_name, name)


def shown_zone(zone: str) -> str:
    """Return a zone as people read it: Etc/GMT-3 is UTC+3."""
    offset = zone.removeprefix("Etc/GMT")
    return f"UTC{offset.translate(_SIGNS)}" if offset[:1] in ("+", "-") else zone


def zone_of_shared(text: str) -> str:
    """Return the zone of a shared location as a message spells it; "" if it is another message."""
    shared = _SHARED.fullmatch(text[:MAX_CHARS])
    return find_zone(shared[1]) if shared else ""


class TimeZones:
    """Reads and stores the zones of people."""

    def __init__(self, scopes: Scopes) -> None:
        self._scopes = scopes

    async def read_zone(self, person: int) -> str:
        """Return a person's zone, "" if it is not known; raise `StoreError`."""
        return (await self._scopes.read(Scope.of_person(person))).zone

    async def known_zone(self, person: int) -> str:
        """Return a person's zone as the turn in their private chat has read it."""
        return (await self._scopes.current(Scope.of_person(person))).zone

    async def store_zone(self, person: int, zone: str) -> None:
        """Store a zone that `find_zone` returned; raise `StoreError`."""

        async def decide(here: ScopeMemory) -> Write | None:
            return None if here.zone == zone else Write(fields=[PersonsZone(zone)])

        await self._scopes.update(Scope.of_person(person), decide)


def _zone_at(latitude: float, longitude: float) -> str:
    """Return the zone of a place on land or at sea."""
    if abs(latitude) > 90 or abs(longitude) > 180:
        return ""
    import tzfpy  # noqa: PLC0415 - its map takes 35 MB, and few people share a location

    return _zones().get(tzfpy.get_tz(longitude, latitude).casefold(), "")


@cache
def _zones() -> dict[str, str]:
    """Return all zones by their names and, if no other zone has it, by the name of their city."""
    names = sorted(available_timezones())
    cities = {name.rpartition("/")[2].casefold(): name for name in names if _CITY.match(name)}
    return cities | {name.casefold(): name for name in names}
