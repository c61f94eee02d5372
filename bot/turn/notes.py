"""What features add below an answer: lines, questions with buttons, and corrections of its claims.

If in doubt, no claim is found: questions, quoted lines, and sentences that match `unless` of the
patterns, such as a condition or a negation, are passed over.
"""

import re
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.reply.parts import Button, Part
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext

QUESTION_ALONE = "…"
"""What a model answers if it has nothing to add to a question by buttons."""


@dataclass(frozen=True, slots=True)
class Below:
    """What one note adds to an answer."""

    lines: tuple[Part, ...] = ()  # joined to the last part of the answer
    questions: tuple[Part, ...] = ()  # messages of their own, behind it
    correction: Part | None = None  # says that a claim of the answer is not so; the last is shown
    codes: tuple[str, ...] = ()  # kept beside the answer (`Message.used`) if none was corrected
    buttons: tuple[Button, ...] = ()  # below its last part; not off the record


Note = Callable[[Request, AgentContext, str], Awaitable[Below]]
"""Looks at a run and at the text of its answer; raises `StoreError`.

Where a note asks something, the person may decline, so nothing that tools did is learned then.
"""

Finish = Callable[[Request, Outbox], Awaitable[Outbox]]
"""Changes an answer of the agent before it is stored; raises nothing."""

_MAX_CHARS = 8_000

_QUOTED = re.compile(r"```[^`]{0,8000}```|`[^`\n]{0,200}`|[“„«\"][^“„«”»\"\n]{0,200}[“”»\"]")
_SENTENCE = re.compile(r"[^.!?…؟\n]+[.!?…؟]*")

Patterns = tuple[re.Pattern[str], Sequence[tuple[re.Pattern[str], re.Pattern[str]]]]
"""What a sentence must match, and by language: what says it, and what in it does not."""


def patterns_in(path: Path) -> Patterns:
    """Read the patterns of each language; one for all of them passes over most sentences."""
    languages = [*tomllib.loads(path.read_text("utf-8")).values()]
    says = [pattern for each in languages for pattern in each["says"]]
    # Where no word begins, it is tried once instead of once for each.
    of_words = "|".join(each[2:] for each in says if each.startswith(r"\b"))
    others = (each for each in says if not each.startswith(r"\b"))
    first = re.compile("|".join((rf"\b(?:{of_words})", *others)))
    pairs = [(re.compile("|".join(each["says"])), re.compile(each["unless"])) for each in languages]
    return first, pairs


def says_any(patterns: Patterns, text: str) -> bool:
    """Return whether a sentence of a text matches what says it, and not what does not.

    Sentences with a question are passed over, and so is quoted text.
    """
    first, by_language = patterns
    plain = _QUOTED.sub(" ", text[:_MAX_CHARS].replace("’", "'").casefold())
    return any(
        claim.search(sentence) and not unless.search(sentence)
        for sentence in _SENTENCE.findall(plain)
        if first.search(sentence)
        and not sentence.rstrip().endswith(("?", "؟"))
        and not sentence.lstrip().startswith(">")
        for claim, unless in by_language
    )


def called(context: AgentContext, *, failed: bool = False) -> set[str]:
    """Return the tools that may have written something in this run, or those that `failed`."""
    return {
        call.name
        for step in context.completed_steps
        for call, result in zip(step.action.calls, step.results, strict=True)
        if result.failed == failed and (failed or not result.is_reader)
    }
