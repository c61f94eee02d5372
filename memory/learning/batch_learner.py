"""Asks the model what is to be learned of a conversation, and writes it, until nothing is due.

What the model refuses to read is given in smaller pieces; one exchange that it refuses again and
again is passed over, so that it does not hold up what follows.
"""

from collections.abc import Sequence
from math import inf

import structlog

from memory.behaviors.learning_behavior import (
    Batch,
    Learned,
    LearningBehavior,
    PartRejected,
    Unlearned,
)
from memory.learning.answered import answered_behind
from memory.learning.due import batch_of, due, due_in
from memory.learning.progress import Ledger, ledger_of
from memory.learning.request import instructions, material
from memory.learning.session_ends import first_session
from memory.scopes.changes import Write
from memory.scopes.scopes import Scopes
from memory.store.store import Store
from memory.text.internal_model import InputRefused, InternalModel
from memory.text.shape import PartInvalid, Shape
from memory.text.tokens import TokenCounter

log = structlog.get_logger(__name__)

_ALONE_AFTER = 2
_LEAVE_OUT_AFTER = 2
"""Failures of a conversation before words that are refused are passed over: the model may be at
fault, and would then refuse everybody's."""


class BatchLearner:
    """Brings behaviors up to date."""

    def __init__(
        self,
        store: Store,
        scopes: Scopes,
        tokens: TokenCounter,
        behaviors: Sequence[LearningBehavior],
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._tokens = tokens
        self._behaviors = behaviors
        self._shape = Shape.of({each.name: each.part for each in behaviors})

    async def learn(
        self, model: InternalModel, ledger: Ledger, failures: int
    ) -> tuple[int, int, float]:
        """Return calls, entries written and in how many seconds more will be due.

        After `failures` of this conversation it begins with a single exchange for one behavior.
        Raise `InternalModelUnavailable` or `NotWritten`.
        """
        calls = entries = 0
        max_exchanges = 0 if failures else inf
        while True:
            ledger = await ledger_of(self._scopes, ledger.conversation, ledger.session)
            waiting = await self._waiting(ledger)
            learners = due(ledger, waiting)
            if not learners:
                return calls, entries, due_in(ledger, waiting)
            alone = [each for each in learners if ledger.failures(each).count >= _ALONE_AFTER]
            asked = (alone or learners)[:1] if alone or max_exchanges < 1 else learners
            batches = {each: batch_of(ledger, each, waiting[each], max_exchanges) for each in asked}
            others = [each for each in self._behaviors if each not in asked]
            calls += 1
            try:
                answer = await model.fill(
                    instructions(asked, others), material(batches, self._tokens), self._shape
                )
            except InputRefused:
                longest = max(batch.exchanges for batch in batches.values())
                max_exchanges = longest // 2
                if longest == len(asked) == 1:
                    if failures < _LEAVE_OUT_AFTER:
                        raise
                    await self._leave_out(ledger, asked[0], batches[asked[0]])
                continue
            max_exchanges = inf
            for each, batch in batches.items():
                entries += await self._take(ledger, each, batch, answer.get(each.name))

    async def _waiting(self, ledger: Ledger) -> dict[LearningBehavior, Unlearned]:
        """Return what behaviors have not learned yet, without those that are up to date."""
        watermarks = {each: ledger.watermark(each) for each in self._behaviors}
        behind = await answered_behind(self._store, ledger.here, watermarks.values())
        waiting = {}
        for behavior, watermark in watermarks.items():
            if newer := behind[watermark]:
                quiet_s = max(0.0, ledger.now - newer[-1].sent_at)
                ended = first_session(newer, ledger.session, ledger.now)
                waiting[behavior] = Unlearned(newer, quiet_s, ended)
        return waiting

    async def _take(
        self, ledger: Ledger, behavior: LearningBehavior, batch: Batch, raw: object
    ) -> int:
        """Write what one part of an answer taught; return how many entries."""
        try:
            learned = behavior.learn(batch, self._shape.validate(behavior.name, raw))
        except (PartInvalid, PartRejected) as error:
            log.warning("part rejected", behavior=behavior.name, reason=str(error))
            await self._scopes.write(ledger.target(behavior), ledger.after_failure(behavior))
            return 0
        await self._write(ledger, behavior, batch, learned)
        return len(learned.entries)

    async def _leave_out(self, ledger: Ledger, behavior: LearningBehavior, batch: Batch) -> None:
        log.warning("left out of learning", behavior=behavior.name, messages=len(batch.messages))
        await self._write(ledger, behavior, batch, Learned())

    async def _write(
        self, ledger: Ledger, behavior: LearningBehavior, batch: Batch, learned: Learned
    ) -> None:
        learned_up_to = learned.learned_up_to or batch.messages[-1].seq
        others = [each for each in self._behaviors if each is not behavior]
        writing: Write = ledger.after(
            behavior, learned, learned_up_to, ledger.learned_by_all(others, learned_up_to)
        )
        await self._scopes.write(ledger.target(behavior), writing)
