"""What features add below an answer of the agent: lines, questions with buttons, corrections.

When in doubt, a sentence makes no claim. Questions and quoted text are passed over, and so are
sentences that match the pattern `unless` of a language, such as conditions and negations.
"""

import re
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from bot.reply.parts import Button, Part, Parts
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext

QUESTION_ALONE = "…"  # what a model answers if it has nothing to add to a question by buttons


@dataclass(frozen=True, slots=True)
class Below:
    """What one note adds to an answer."""

    lines: Parts = ()  # joined to the last part of the answer
    questions: Parts = ()  # messages of their own, behind it
    correction: Part | None = None  # of a false claim; of several notes, the last one's is shown
    codes: tuple[str, ...] = ()  # stored with the answer (`Message.used`), unless one is corrected
    buttons: tuple[Button, ...] = ()  # below the last part of the answer; left out off the record


Note = Callable[[Request, AgentContext, str], Awaitable[Below]]
"""Looks at a run and at the text of its answer; raises `StoreError`.

If a note asks a question, the person may decline. So nothing that tools did is learned then.
"""

Finish = Callable[[Request, Outbox], Awaitable[Outbox]]
"""Changes an answer of the agent before it is stored; raises nothing but `StoreError`."""

_MAX_CHARS = 8_000
_QUOTED = re.compile(r"```[^`]{0,8000}```|`[^`\n]{0,200}`|[“„«\"][^“„«”»\"\n]{0,200}[“”»\"]")
_SENTENCE = re.compile(r"[^.!?…؟\n]+[.!?…؟]*")
Pairs = Sequence[tuple[re.Pattern[str], re.Pattern[str]]]
"""For each language, what makes the claim, and what in the same sentence takes it back."""
Patterns = tuple[re.Pattern[str], Callable[[], Pairs]]
"""What every sentence with a claim matches, and the pairs, compiled when first asked for."""


def patterns_in(path: Path) -> Patterns:
    """Read the patterns of each language, and join them to one that rules most sentences out."""
    languages = [*tomllib.loads(path.read_text("utf-8")).values()]
    says = [pattern for each in languages for pattern in each["says"]]
    # They share one `\b`, so that it is tried once at each position, not once for each of them.
    of_words = "|".join(each[2:] for each in says if each.startswith(r"\b"))
    others = (each for each in says if not each.startswith(r"\b"))
    first = re.compile("|".join((rf"\b(?:{of_words})", *others)))

    @cache  # few answers need the pairs, and they take as long to compile as the first pattern
    def pairs() -> Pairs:
        return [(re.compile("|".join(e["says"])), re.compile(e["unless"])) for e in languages]

    return first, pairs


def says_any(patterns: Patterns, text: str) -> bool:
    """Return whether a sentence of a text makes a claim that nothing in it takes back."""
    first, pairs = patterns
    plain = _QUOTED.sub(" ", text[:_MAX_CHARS].replace("’", "'").casefold())
    return any(
        claim.search(sentence) and not unless.search(sentence)
        for sentence in _SENTENCE.findall(plain)
        if first.search(sentence)
        and not sentence.rstrip().endswith(("?", "؟"))
        and not sentence.lstrip().startswith(">")
        for claim, unless in pairs()
    )


def called(context: AgentContext, *, failed: bool = False) -> set[str]:
    """Return the tools that may have written something in this run, or those that `failed`."""
    return {
        call.name
        for step in context.completed_steps
        for call, result in zip(step.action.calls, step.results, strict=True)
        if result.failed == failed and (failed or not result.is_reader)
    }
