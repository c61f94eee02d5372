"""Notices an answer that says that it saved something, which is not so.

`saved.toml` has patterns for the languages of the catalogue; in another one no claim is found.
If in doubt, they find none: sentences with a question, a condition or a negation are passed over,
and so is quoted text.
"""

import re
import tomllib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.agent.agent import RunAgent
from bot.turn.outbox import Finish, Note
from bot.turn.tool_questions import AgreedRun
from memory.behaviors.context import AgentContext
from memory.behaviors.learning_mode import Mode
from memory.scopes.writes import ForgetRecord
from memory.store.keys import Scope

NOTHING_KEPT = "claims.nothing_kept"
"""The key of what is said later, if learning has kept nothing of what the answer says it saved."""

_MAX_CHARS = 8_000

_QUOTED = re.compile(r"```[^`]{0,8000}```|`[^`\n]{0,200}`|[“„«\"][^“„«”»\"\n]{0,200}[“”»\"]")
_SENTENCE = re.compile(r"[^.!?…؟\n]+[.!?…؟]*")

Patterns = Sequence[tuple[re.Pattern[str], re.Pattern[str]]]


def patterns_in(path: Path) -> Patterns:
    """Read the patterns of each language: what says it, and what in the same sentence does not."""
    languages = tomllib.loads(path.read_text("utf-8")).values()
    return [(re.compile("|".join(each["says"])), re.compile(each["unless"])) for each in languages]


_CLAIMS = patterns_in(Path(__file__).with_name("saved.toml"))


def claims_to_have_saved(text: str) -> bool:
    """Return whether an answer says that it has saved something of what the person said."""
    return says_any(_CLAIMS, text)


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


async def by_itself(_: Scope) -> Mode:
    """Answer that facts are learned without asking."""
    return "auto"


@dataclass(frozen=True, slots=True)
class CheckedAgent:
    """An agent, and what is added below its answers; `mode_of` returns how facts are learned.

    `agreed` runs tools that ask first; without it there is no such tool. `notes` and
    `finishes` are those of features.
    """

    run: RunAgent
    mode_of: Callable[[Scope], Awaitable[Mode]] = by_itself
    agreed: AgreedRun | None = None
    notes: Sequence[Note] = ()
    finishes: Sequence[Finish] = ()

    async def correction(self, context: AgentContext, text: str) -> str:
        """Return the key of the sentence that corrects a false claim of an answer, "" for none.

        With "auto", learning runs after the answer and may well keep what was said. Then it is
        `NOTHING_KEPT`, which only the end of learning can tell. Raise `StoreError`.
        """
        if not claims_to_have_saved(text):
            return ""
        if context.is_off_record:
            return "claims.off_record"
        if await context.chat_history.is_off():
            return "claims.off"
        if _may_have_written(context):
            return ""
        mode = await self.mode_of(context.conversation)
        return NOTHING_KEPT if mode == "auto" else f"claims.{mode}"


def called(context: AgentContext, *, failed: bool = False) -> set[str]:
    """Return the tools of which a call in this run has failed, or has succeeded and may write."""
    return {
        call.name
        for step in context.completed_steps
        for call, result in zip(step.action.calls, step.results, strict=True)
        if result.failed == failed and (failed or not result.is_reader)
    }


def _may_have_written(context: AgentContext) -> bool:
    """Return whether a tool of this run has written something, or may have."""
    # A write with a nonce is a card of earlier talk, not a write of this run.
    wanted = (each for each in context.writes if not each.nonce)
    return bool(called(context)) or any(not isinstance(each, ForgetRecord) for each in wanted)
