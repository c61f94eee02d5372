"""What a fleet has used so far: CPU time of each process, Redis' counters, the machine's CPU time.

To measure a period, take two readings and their difference.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.lab.fleet import Fleet

_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Reading:
    """Rising counters at one moment; `since` returns the difference to an earlier reading.

    `cpu_s` is the CPU time of each process, `machine_s` that of the whole machine. `commands`
    counts Redis commands by name, with those inside scripts. `nbytes` went over Redis' connections
    in both directions.
    """

    at: float
    sent: int
    cpu_s: Mapping[str, float]
    machine_s: float
    commands: Mapping[str, int]
    nbytes: int

    @classmethod
    async def of(cls, fleet: Fleet) -> "Reading":
        used = await fleet.redis.info("cpu")
        stats = await fleet.redis.info("stats")
        commands = await fleet.redis.info("commandstats")
        return cls(
            at=time.monotonic(),
            sent=fleet.telegram.sent,
            cpu_s={name: bot.cpu_s for name, bot in fleet.bots.items()}
            | {
                "redis": float(used["used_cpu_sys"]) + float(used["used_cpu_user"]),
                "model": fleet.model.cpu_s,
                "people_and_telegram": time.process_time(),
            },
            machine_s=_machine_s(),
            commands={
                name.removeprefix("cmdstat_"): int(said.partition("calls=")[2].partition(",")[0])
                for name, said in commands.items()
            },
            nbytes=int(stats["total_net_input_bytes"]) + int(stats["total_net_output_bytes"]),
        )

    def since(self, before: "Reading") -> "Reading":
        """Return the difference to an earlier reading."""
        return Reading(
            at=self.at - before.at,
            sent=self.sent - before.sent,
            cpu_s={name: used - before.cpu_s[name] for name, used in self.cpu_s.items()},
            machine_s=self.machine_s - before.machine_s,
            commands={
                name: calls - before.commands.get(name, 0) for name, calls in self.commands.items()
            },
            nbytes=self.nbytes - before.nbytes,
        )

    @property
    def cores(self) -> dict[str, float]:
        """For a difference: how many cores each process used, and all others together."""
        shares = {name: round(used / self.at, 3) for name, used in self.cpu_s.items()}
        others = (self.machine_s - sum(self.cpu_s.values())) / self.at
        return shares | {"everything_else": round(max(0.0, others), 3)}

    @property
    def is_processor_bound(self) -> bool:
        """For a difference: whether almost no CPU time was left, to the machine or a process."""
        busiest = max(each / self.at for each in self.cpu_s.values())
        return self.machine_s / self.at > 0.92 * CORES or busiest > 0.95


def _machine_s() -> float:
    """Return the CPU time of all cores since the machine's start in seconds, without idle time."""
    fields = Path("/proc/stat").read_text().partition("\n")[0].split()[1:]
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields[:8])
    return (user + nice + system + sum(interrupts)) / _TICKS_A_SECOND
