"""Notices an answer that claims to have saved something although no tool wrote anything.

The patterns know the bot's five languages. If in doubt, they find no claim:
sentences with a question, a condition or a negation are passed over, and so is quoted text.
"""

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.turn.agreed_run import AgreedRun
from memory.behaviors.context import AgentContext
from memory.behaviors.learning_mode import Mode
from memory.behaviors.steps import FinishAction
from memory.scopes.writes import ForgetRecord
from memory.store.keys import Scope

RunAgent = Callable[[AgentContext], Awaitable[FinishAction]]
"""Answers what a context holds; raises `ModelError` or `MessageRefused`."""

_MAX_CHARS = 8_000
_READERS = frozenset(
    ("current_time", "calculate", "search_memory", "list_reminders", "read_page", "search_web")
)
"""Tools that save nothing. Any other one, such as an operator's, may have saved what is claimed."""

_QUOTED = re.compile(r"```[^`]{0,8000}```|`[^`\n]{0,200}`|[“„«\"][^“„«”»\"\n]{0,200}[“”»\"]")
_SENTENCE = re.compile(r"[^.!?…؟\n]+[.!?…؟]*")

_CLAIMS = (
    # English
    (
        re.compile(
            r"\bi(?:'ve| have)?(?: just| now)? (?:saved|stored|noted|remembered|recorded"
            r"|memori[sz]ed|written down) (?:that|this|it|your|them)\b"
            r"|\bi'll remember (?:that|this|it)\b|\badded (?:that|this|it) to my memory\b"
            r"|^\W*(?:(?:got it|done|ok|okay|sure|great)\W+)?(?:saved|noted)\W*$"
        ),
        re.compile(r"\b(?:not|never|if|when|once|would|could|can|should|as i|you said)\b|n't"),
    ),
    # German
    (
        re.compile(
            r"\b(?:ich habe?|habe? ich)\b[^,;:]{0,60}\b(?:mir [^,;:]{0,40}\bgemerkt|mir gemerkt"
            r"|gespeichert|abgespeichert|notiert)\b|\b(?:ich merke|merke ich) mir (?:das|es|dies)\b"
            r"|^\W*(?:(?:ok|okay|gut|alles klar|ist)\W+)?(?:gespeichert|gemerkt|notiert)\W*$"
        ),
        re.compile(r"\b(?:nicht|nie|kein\w*|wenn|falls|sobald|soll|kann|könnte|wie ich)\b"),
    ),
    # Spanish
    (
        re.compile(
            r"\b(?:lo|la|los|las|eso|te|ya) he (?:guardado|anotado|apuntado|memorizado)\b"
            r"|\bhe (?:guardado|anotado|apuntado|memorizado) (?:eso|esto|que|tu|tus)\b"
            r"|\bqueda (?:guardado|anotado|apuntado)\b|\b(?:lo|eso lo) recordaré\b"
            r"|^\W*(?:(?:vale|listo|entendido)\W+)?(?:guardado|anotado|apuntado)\W*$"
        ),
        re.compile(r"\b(?:no|nunca|si|cuando|puedo|podría|como)\b"),
    ),
    # Russian
    (
        re.compile(
            r"\bя (?:(?:это|уже|всё) )?(?:запомнил|сохранил|записал)а?\b|\bзапомню это\b"
            r"|\bя это запомню\b|^\W*(?:(?:хорошо|понял|готово)\W+)?"
            r"(?:запомнил|сохранил|записал|запомнила|сохранено|записано)\W*$"
        ),
        re.compile(r"\b(?:не|если|когда|могу|бы|как|ли)\b"),
    ),
    # Persian
    (
        re.compile(
            r"(?:به خاطر|به یاد) سپردم|(?:یادداشت|ذخیره) کردم|در حافظه\w* (?:ذخیره|ثبت) (?:کردم|شد)"
        ),
        re.compile(r"\b(?:اگر|وقتی|آیا)\b"),
    ),
)


def claims_to_have_saved(text: str) -> bool:
    """Return whether an answer says that it has saved something of what the person said."""
    plain = _QUOTED.sub(" ", text[:_MAX_CHARS].replace("’", "'").casefold())
    return any(
        claim.search(sentence) and not unless.search(sentence)
        for sentence in _SENTENCE.findall(plain)
        if not sentence.rstrip().endswith(("?", "؟")) and not sentence.lstrip().startswith(">")
        for claim, unless in _CLAIMS
    )


async def by_itself(_: Scope) -> Mode:
    """Answer that facts are learned without asking."""
    return "auto"


@dataclass(frozen=True, slots=True)
class CheckedAgent:
    """An agent, and what corrects its answers; `mode_of` returns how facts are learned.

    `agreed` runs tools that ask first; without it there is no such tool.
    """

    run: RunAgent
    mode_of: Callable[[Scope], Awaitable[Mode]] = by_itself
    agreed: AgreedRun | None = None

    async def correction(self, context: AgentContext, text: str) -> str:
        """Return the key of the sentence that corrects a false claim of an answer, "" for none.

        With "auto", learning runs after the answer and may well keep what was said. So nothing is
        corrected, and ✍ shows what was kept. Raise `StoreError`.
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
        return "" if mode == "auto" else f"claims.{mode}"


def _may_have_written(context: AgentContext) -> bool:
    """Return whether a tool of this run has written something, or may have."""
    called = {
        call.name
        for step in context.completed_steps
        for call, result in zip(step.action.calls, step.results, strict=True)
        if not result.failed
    }
    # A write with a nonce is a card of earlier talk, not a write of this run.
    wanted = (each for each in context.writes if not each.nonce)
    return bool(called - _READERS) or any(not isinstance(each, ForgetRecord) for each in wanted)
