"""Internal calls and vectors rest while their model fails for everybody: from a minute to a day.

    GuardedInternalModel   internal calls
    GuardedEmbedder        vectors
    Guard                  decides whether a model is asked; both use one

What only one call may be the reason for does not count, unless it happens again and again. One
answer ends the rest.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TypeVar

import structlog

from bot.model.advice import model_error, reason_of
from bot.model.condition import ModelCondition, Part
from bot.model.model_errors import (
    AnswerIncomplete,
    AnswerUnreadable,
    ModelError,
    ModelRefused,
    ModelUnavailable,
)
from bot.model.resting import Attempt, Rest
from memory.search.embeddings import Embedder, EmbeddingsUnavailable, Vectors
from memory.text.internal_model import InternalModel, InternalModelUnavailable
from memory.text.shape import Shape

log = structlog.get_logger(__name__)

FIRST_REST_S = 60.0
LONGEST_REST_S = 86_400.0
_LONGEST_OUTAGE_REST_S = 900.0
"""For what ends without the operator: a server that is down or has too much to do."""

_DOUBTS = 20
"""So many are too many. A call that fails for a reason of its own is one: learning needs up to 13
in a row to find words that a filter refuses. Half as many is an outage, which may pass at once."""

_ADVICE: Mapping[Part, str] = {
    "learning": "new messages are answered, but nothing is learned from them meanwhile",
    "vectors": "recall goes by words alone; OPENAI_EMBEDDING_MODEL=off if this server has none",
}

_Answer = TypeVar("_Answer")
_Unavailable = type[InternalModelUnavailable] | type[EmbeddingsUnavailable]


class Guard:
    """Keeps calls from a model that fails for everybody."""

    def __init__(self, condition: ModelCondition, rest: Rest | None = None) -> None:
        self._condition = condition
        self._rest = rest or Rest(first_s=FIRST_REST_S, longest_s=LONGEST_REST_S)
        self._doubts = 0

    async def ask(
        self, call: Callable[[], Awaitable[_Answer]], unavailable: _Unavailable
    ) -> _Answer:
        """Return the answer; raise `unavailable`, at once while the model rests."""
        attempt = self._rest.begin()
        if attempt is None:
            raise unavailable("resting", rests_s=self._rest.left_s)
        try:
            answer = await call()
        except (InternalModelUnavailable, EmbeddingsUnavailable) as error:
            if self._note_failure(attempt, error):
                raise unavailable(str(error), rests_s=self._rest.left_s) from error
            raise
        finally:
            self._rest.abandoned(attempt)
        self._note_answer(attempt)
        return answer

    def _note_failure(self, attempt: Attempt, error: Exception) -> bool:
        """Say whether the model failed for everybody, and not only for this conversation."""
        cause = model_error(error) or ModelError()
        self._condition.failed(cause)
        was_on = self._rest.is_on
        is_outage = isinstance(cause, ModelUnavailable) and cause.code != "insufficient_quota"
        is_one_call = _may_concern_one_call(cause)
        self._doubts += 1 if is_one_call else _DOUBTS // 2 if is_outage else _DOUBTS
        if self._doubts < _DOUBTS:
            self._rest.answered(attempt)
            return False
        longest_s = _LONGEST_OUTAGE_REST_S if is_outage else LONGEST_REST_S
        rest_s = self._rest.failed(attempt, in_silence=False, longest_s=longest_s)
        if not was_on:
            part, setting = self._condition.part, self._condition.setting
            reason = reason_of(cause, setting)
            log.warning("model off", part=part, **reason, again_in_s=rest_s, advice=_ADVICE[part])
        # Whether a model can write JSON at all is not known; the conversation waits as well.
        return not isinstance(cause, AnswerUnreadable)

    def _note_answer(self, attempt: Attempt) -> None:
        self._condition.answered()
        self._doubts = 0
        if self._rest.answered(attempt):
            log.info("model on again", part=self._condition.part)


class GuardedInternalModel:
    """Makes internal calls, unless the model rests."""

    def __init__(self, model: InternalModel, guard: Guard) -> None:
        self._model = model
        self._guard = guard

    async def fill(self, instructions: str, content: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of a structured answer; raise `InternalModelUnavailable`."""
        return await self._guard.ask(
            lambda: self._model.fill(instructions, content, shape), InternalModelUnavailable
        )

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        return await self._guard.ask(
            lambda: self._model.write(instructions, content, max_tokens),
            InternalModelUnavailable,
        )


class GuardedEmbedder:
    """Makes vectors, unless the model rests."""

    def __init__(self, embedder: Embedder, guard: Guard) -> None:
        self._embedder = embedder
        self._guard = guard

    @property
    def fingerprint(self) -> str:
        """Name model and dimensions."""
        return self._embedder.fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` unit rows; raise `EmbeddingsUnavailable`."""
        return await self._guard.ask(lambda: self._embedder.embed(texts), EmbeddingsUnavailable)


def _may_concern_one_call(cause: ModelError) -> bool:
    """Say whether another conversation's call may well succeed."""
    if isinstance(cause, ModelRefused):
        return cause.may_concern_messages
    return isinstance(cause, AnswerIncomplete) or type(cause) is ModelError
