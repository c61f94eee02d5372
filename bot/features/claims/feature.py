"""Adds a correction below an answer that says that it saved something, although it did not.

`saved.toml` has patterns for the languages of the catalogue; in another one no claim is found.
"""

from pathlib import Path

from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.claims.later import NOTHING_KEPT, FalseClaims
from bot.turn.notes import Below, called, patterns_in, says_any
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.behaviors.learning_mode import LearningModes
from memory.message import CLAIM
from memory.scopes.writes import ForgetRecord

_CLAIMS = patterns_in(Path(__file__).with_name("saved.toml"))


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, sentences = services.memory, services.sentences
    return Feature(
        name="claims",
        notes=[ClaimNote(LearningModes(memory.scopes), sentences).below],
        learned=[FalseClaims(memory, services.chat, sentences).correct],
    )


def claims_to_have_saved(text: str) -> bool:
    """Return whether an answer says that it has saved something of what the person said."""
    return says_any(_CLAIMS, text)


class ClaimNote:
    """Corrects a false claim below its answer, or notes it for the end of learning."""

    def __init__(self, modes: LearningModes, sentences: Sentences) -> None:
        self._modes = modes
        self._sentences = sentences

    async def below(self, request: Request, context: AgentContext, text: str) -> Below:
        """Return the correction, or the code of a claim of which only learning can tell."""
        key = await self.correction(context, text)
        if key == NOTHING_KEPT:
            return Below(codes=(f"{CLAIM}{request.language}",))
        return Below(correction=self._sentences.say(request.language, key)[0]) if key else Below()

    async def correction(self, context: AgentContext, text: str) -> str:
        """Return the key of the sentence that corrects a false claim, "" for none.

        With "auto", learning runs after the answer and may well keep what was said: `NOTHING_KEPT`.
        Raise `StoreError`.
        """
        if not claims_to_have_saved(text):
            return ""
        if context.is_off_record:
            return "claims.off_record"
        if await context.chat_history.is_off():
            return "claims.off"
        if _may_have_written(context):
            return ""
        mode = await self._modes.mode(context.conversation)
        return NOTHING_KEPT if mode == "auto" else f"claims.{mode}"


def _may_have_written(context: AgentContext) -> bool:
    """Return whether a tool of this run has written something, or may have."""
    # A write with a nonce is a card of earlier talk, not a write of this run.
    wanted = (each for each in context.writes if not each.nonce)
    return bool(called(context)) or any(not isinstance(each, ForgetRecord) for each in wanted)
