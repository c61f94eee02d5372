"""What reminders add to an export, and that a person's zone goes when they are forgotten."""

import time
from dataclasses import replace

import orjson

from bot.features.reminders.feature import feature
from bot.features.reminders.time_zone import TimeZones
from memory.erasure.jobs import Job
from memory.memory import Memory
from tests.bot.features.services import services_of
from tests.memory.turns import ANN, HERE
from tests.memory.work.test_items import reminder
from tests.memory.work.test_items import store as store_items


async def test_an_export_has_the_reminders_and_the_zone(memory: Memory) -> None:
    await store_items(
        memory, replace(reminder("Tea"), rule="0 9 * * *"), reminder("not yet", due=0)
    )
    await TimeZones(memory.scopes).store_zone(ANN, "Asia/Tehran")
    memory.exporter.parts += feature(services_of(memory)).exports
    export = orjson.loads((await memory.exporter.export(HERE)).content)
    tea = {"due": "2100-01-01T00:00:00+00:00", "cron": "0 9 * * *", "time_zone": "UTC"}
    assert export["reminders"] == [{"text": "Tea", **tea}]
    assert export["time_zone"] == "Asia/Tehran"


async def test_forgetting_a_person_takes_their_zone(memory: Memory) -> None:
    await store_items(memory, reminder())
    zones = TimeZones(memory.scopes)
    await zones.store_zone(ANN, "Asia/Tehran")
    await memory.jobs.start_job(Job("job", "forget", ANN, 3, time.time(), b""))
    await memory.jobs.run_job("job")
    assert await zones.read_zone(ANN) == ""
