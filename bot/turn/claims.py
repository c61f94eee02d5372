"""What features share that correct a claim of an answer: patterns of sentences, and the calls made.

If in doubt, no claim is found: questions, quoted lines, and sentences that match `unless` of the
patterns, such as a condition or a negation, are passed over.
"""

import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

from memory.behaviors.context import AgentContext

_MAX_CHARS = 8_000

_QUOTED = re.compile(r"```[^`]{0,8000}```|`[^`\n]{0,200}`|[“„«\"][^“„«”»\"\n]{0,200}[“”»\"]")
_SENTENCE = re.compile(r"[^.!?…؟\n]+[.!?…؟]*")

Patterns = Sequence[tuple[re.Pattern[str], re.Pattern[str]]]


def patterns_in(path: Path) -> Patterns:
    """Read the patterns of each language: what says it, and what in the same sentence does not."""
    languages = tomllib.loads(path.read_text("utf-8")).values()
    return [(re.compile("|".join(each["says"])), re.compile(each["unless"])) for each in languages]


def says_any(patterns: Patterns, text: str) -> bool:
    """Return whether a sentence of a text matches the first pattern of a pair, not the second.

    Sentences with a question are passed over, and so is quoted text.
    """
    plain = _QUOTED.sub(" ", text[:_MAX_CHARS].replace("’", "'").casefold())
    return any(
        claim.search(sentence) and not unless.search(sentence)
        for sentence in _SENTENCE.findall(plain)
        if not sentence.rstrip().endswith(("?", "؟")) and not sentence.lstrip().startswith(">")
        for claim, unless in patterns
    )


def called(context: AgentContext, *, failed: bool = False) -> set[str]:
    """Return the tools that may have written something in this run, or those that `failed`."""
    return {
        call.name
        for step in context.completed_steps
        for call, result in zip(step.action.calls, step.results, strict=True)
        if result.failed == failed and (failed or not result.is_reader)
    }
