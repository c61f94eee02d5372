"""Measures what learning costs: internal calls, tokens, bills and latency over 1,000 turns.

    python -m tests.lab.learning [DIR]

One person talks for months in simulated time, with the product's own parts in this process, a real
Valkey, scripted models, and hashed words as embeddings. The texts are made up, or drawn from the
conversations in DIR. In `on`, the settings have their defaults and the person continues within 5 to
25 s. In `on_typing`, the person reads and types; `on_typing_300_s` adds LEARN_AFTER_S=300. `off`
has neither learning nor documents, but recalls. The output is one JSON object. `verdicts` compare
both runs at the defaults with the targets. Compare latencies only on an idle machine.

Input tokens count everything that is sent: tools, schemas, messages. `billed` is what they cost a
turn if the beginning that a request shares with the previous one of the same kind is cheaper, by
three rules: any beginning; beginnings from 1,024 tokens in steps of 128; the latter only within ten
minutes.
"""

import asyncio
import json
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise, takewhile
from pathlib import Path
from statistics import fmean

import structlog

from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from tests.lab.figures import percentiles
from tests.lab.scripted_models import Request
from tests.lab.sessions import Exchange, Pace, conversation, made_up_topics, read_topics
from tests.lab.talking import MODEL_S, talking
from tests.settings import Settings
from tests.valkey import ValkeyServer

_MIN = 1_024
_STEP = 128
_KEPT_S = 600.0


@dataclass(frozen=True, slots=True)
class Bill:
    """One request in tokens.

    `same` is the length of the beginning that it shares with the previous request. `stepped` is the
    part of that which a server reuses if it caches beginnings from 1,024 tokens in steps of 128.
    `fresh` is the same for a server that drops them after ten minutes. `pieces` are the tokens of
    each piece.
    """

    request: Request
    pieces: tuple[int, ...]
    written: int
    same: int
    stepped: int
    fresh: int

    @property
    def read(self) -> int:
        """Tokens of the whole prompt."""
        return sum(self.pieces)


def bills(requests: Iterable[Request], tokens: TokenCounter) -> list[Bill]:
    """Return a bill for each request, in their order."""
    before: dict[str, Request] = {}
    made = []
    for request in requests:
        last = before.get(request.kind)
        same = _same(last.pieces, request.pieces, tokens) if last else 0
        stepped = _MIN + (same - _MIN) // _STEP * _STEP if same >= _MIN else 0
        is_fresh = last is not None and request.at - last.at <= _KEPT_S
        made.append(
            Bill(
                request=request,
                pieces=tuple(tokens.count(piece) + MESSAGE_OVERHEAD for piece in request.pieces),
                written=tokens.count(request.answer),
                same=same,
                stepped=stepped,
                fresh=stepped if is_fresh else 0,
            )
        )
        before[request.kind] = request
    return made


def _same(before: Sequence[str], now: Sequence[str], tokens: TokenCounter) -> int:
    """Count the tokens with which both begin, without the last one, which may differ."""
    same = 0
    for old, new in zip(before, now, strict=False):
        if old != new:
            return same + max(0, tokens.count(_beginning(old, new)) - 1)
        same += tokens.count(new) + MESSAGE_OVERHEAD
    return same


def _beginning(one: str, other: str) -> str:
    pairs = takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False))
    return "".join(character for character, _ in pairs)


TURNS = 1_000
IN_A_ROW = 200
STEADY_FROM = 50
HUNDRED = 100

ON = Settings(_env_file=None)
OFF = Settings(_env_file=None, learn=(), recall_narrative="off", documents="off")
RUNS: dict[str, tuple[Pace, Settings]] = {
    "on": ("brisk", ON),
    "on_typing": ("typing", ON),
    "on_typing_300_s": ("typing", Settings(_env_file=None, learn_after_s=300)),
    "off": ("brisk", OFF),
}
LARGEST_PROMPT = ON.prompt_tokens - ON.reply_tokens
DISCOUNTS = {"50 %": 0.5, "90 %": 0.9}

MAX_CALLS = 0.4
MAX_BILLED = 6_000
FLAT = 0.05


@dataclass(frozen=True, slots=True)
class Run:
    """What one run was billed, turn by turn, and how long its answers took in seconds."""

    bills: Sequence[Bill]
    seconds: Sequence[float]
    seconds_in_a_row: Sequence[float]

    def of(self, *kinds: str) -> list[Bill]:
        return [bill for bill in self.bills if bill.request.kind in kinds]


async def run(settings: Settings, exchanges: Sequence[Exchange], tokens: TokenCounter) -> Run:
    """Run all exchanges on a new Valkey, the last ones without pauses."""
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
        async with talking(settings, tokens, server.url) as (talk, tape):
            seconds = [await talk.exchange(each) for each in exchanges[:TURNS]]
            await talk.finish()
            measured = len(tape.requests)
            in_a_row = await talk.in_a_row(exchanges[TURNS:])
    return Run(bills(tape.requests[:measured], tokens), seconds, in_a_row)


def figures(of: Run) -> dict[str, object]:
    internal, main = of.of("fill", "write"), of.of("main")
    labels = Counter(bill.request.label for bill in internal)
    return {
        "internal_calls_a_turn": a_turn(len(internal)),
        "by_what_they_are_for": {label: a_turn(n) for label, n in labels.most_common()},
        "tokens_a_turn": {
            "main_in": a_turn(sum(bill.read for bill in main)),
            "main_out": a_turn(sum(bill.written for bill in main)),
            "internal_in": a_turn(sum(bill.read for bill in internal)),
            "internal_out": a_turn(sum(bill.written for bill in internal)),
        },
        "main_in_by_part": parts(main),
        "largest_prompt": max(bill.read for bill in main),
        "cut_cycles": cycles(main),
        "billed_in_a_turn": {name: billed(of, part) for name, part in DISCOUNTS.items()},
        "reply_ms": percentiles(of.seconds),
        "reply_ms_while_learning": percentiles(of.seconds_in_a_row),
    }


def parts(main: Sequence[Bill]) -> dict[str, float]:
    """Return the tokens of each part of a prompt; the last message has the memory context too."""
    return {
        "tools": a_turn(sum(bill.pieces[0] for bill in main)),
        "system": a_turn(sum(bill.pieces[1] for bill in main)),
        "window": a_turn(sum(sum(bill.pieces[2:-1]) for bill in main)),
        "last_message": a_turn(sum(bill.pieces[-1] for bill in main)),
        "as_in_the_one_before": a_turn(sum(bill.same for bill in main)),
    }


def cycles(main: Sequence[Bill]) -> dict[str, object]:
    """Return how the mean prompt between two cuts of the window differs from the mean of all."""
    steady = [bill for bill in main if bill.request.turn >= STEADY_FROM]
    off = cycle_means(main)
    return {
        "whole": len(off),
        "mean_tokens": round(fmean(bill.read for bill in steady)),
        "min_max_percent": [percent(min(off)), percent(max(off))],
        "within_5_percent": percent(fmean(abs(each) <= FLAT for each in off)),
        "by_hundred_turns_percent": [percent(each) for each in drift(main)],
    }


def cycle_means(main: Sequence[Bill]) -> list[float]:
    """Return by what share the mean prompt of each whole cycle differs from the overall mean."""
    steady = [bill for bill in main if bill.request.turn >= STEADY_FROM]
    mean = fmean(bill.read for bill in steady)
    whole = [list(cycle) for _, cycle in groupby(steady, key=lambda bill: bill.request.pieces[2])]
    return [fmean(bill.read for bill in cycle) / mean - 1 for cycle in whole[1:-1]]


def drift(main: Sequence[Bill]) -> list[float]:
    """Return by what share the mean prompt of each hundred turns differs from the overall mean."""
    reads = [bill.read for bill in main if bill.request.turn >= STEADY_FROM]
    starts = range(0, len(reads) - HUNDRED // 2, HUNDRED)
    return [fmean(reads[at : at + HUNDRED]) / fmean(reads) - 1 for at in starts]


def billed(of: Run, discount: float) -> dict[str, dict[str, float]]:
    """Return billed input tokens a turn, by the rule for what is cheaper."""

    def total(made: Sequence[Bill], rule: str) -> float:
        return a_turn(sum(bill.read - discount * getattr(bill, rule) for bill in made))

    return {
        name: {
            "main": total(of.of("main"), rule),
            "internal": total(of.of("fill", "write"), rule),
            "total": total(of.bills, rule),
        }
        for name, rule in (("any", "same"), ("stepped", "stepped"), ("within_10_min", "fresh"))
    }


def verdicts(on: Run) -> dict[str, bool]:
    """Compare a run with the targets."""
    internal, main = on.of("fill", "write"), on.of("main")
    return {
        f"internal calls a turn <= {MAX_CALLS}": a_turn(len(internal)) <= MAX_CALLS,
        "no prompt over PROMPT_TOKENS, reply included": (
            max(bill.read for bill in main) <= LARGEST_PROMPT
        ),
        "the window does not change between two cuts": all(
            before.request.pieces[2] != after.request.pieces[2]
            or before.request.pieces[:-1] == after.request.pieces[: len(before.pieces) - 1]
            for before, after in pairwise(main)
        ),
        "every cut cycle within 5 % from turn 50": all(
            abs(each) <= FLAT for each in cycle_means(main)
        ),
        "prompts flat within 5 % from turn 50, by hundred turns": all(
            abs(each) <= FLAT for each in drift(main)
        ),
        f"billed input tokens a turn <= {MAX_BILLED} at 50 %": (
            billed(on, 0.5)["any"]["total"] <= MAX_BILLED
        ),
    }


def a_turn(total: float) -> float:
    return round(total / TURNS, 3 if total < 10 * TURNS else 0)


def percent(share: float) -> float:
    return round(100 * share, 1)


async def measure(folder: Path | None) -> dict[str, object]:
    topics = read_topics(folder) if folder else made_up_topics()
    tokens = await TokenCounter.load()
    runs = {
        name: await run(settings, list(conversation(TURNS + IN_A_ROW, pace, topics)), tokens)
        for name, (pace, settings) in RUNS.items()
    }
    return {
        "texts": str(folder) if folder else "made up",
        "turns": TURNS,
        "model_ms": 1000 * MODEL_S,
        **{name: figures(each) for name, each in runs.items()},
        "verdicts": {name: verdicts(runs[name]) for name in ("on", "on_typing")},
    }


def main(folder: Path | None) -> None:
    """Print all figures; log only warnings and errors."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    sys.stdout.write(json.dumps(asyncio.run(measure(folder)), indent=2) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)
