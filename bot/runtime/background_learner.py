"""Learning after replies, in the background and bounded."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial

import structlog

from bot.costs import billed_to
from bot.model.model_errors import reason_of
from bot.turn.observers import LearningBegan, LearningEnded, Observer, observed
from memory.learning.learner import LearningRound
from memory.learning.progress import LearnerBusy
from memory.limits.usage import NO_PERSON
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.errors import StoreError
from memory.store.keys import Scope
from memory.store.tasks import end_tasks
from memory.text.internal_model import InternalModelUnavailable

log = structlog.get_logger(__name__)

_MAX_CONCURRENT = 4
_MAX_AFTER = 20  # what has found no permit by then waits for the next learning

Learn = Callable[[Scope], Awaitable[LearningRound]]
"""Learns what is due in a conversation; raises the errors of `ConversationLearner.learn`."""


AfterLearning = Callable[[Scope], Awaitable[bool]]
"""Called after learning from a conversation; raises `StoreError`.

Returns false if it could not do all of it now, because of the rate limit of the chat.
"""


@dataclass(slots=True, eq=False)
class BackgroundLearner:
    """Learns from a few conversations at once, from each in one task at a time."""

    learn_from: Learn
    after: Sequence[AfterLearning] = ()
    observe: Observer = lambda _: None
    after_again_s: float = 2.0
    _slots: asyncio.Semaphore = field(default_factory=partial(asyncio.Semaphore, _MAX_CONCURRENT))
    _is_stopping: asyncio.Event = field(default_factory=asyncio.Event)
    running: dict[Scope, asyncio.Task[None]] = field(default_factory=dict)
    _again: set[Scope] = field(default_factory=set)

    def learn(self, conversation: Scope) -> None:
        """Start learning from a conversation, or repeat it after the run under way; return at once.

        No error is raised: learning that fails is logged, and the sweep starts it again.
        """
        if conversation in self.running:
            self._again.add(conversation)
            return
        task = asyncio.create_task(self._learn(conversation), name=f"learn {conversation.tag}")
        self.running[conversation] = task

        def ended(_: asyncio.Task[None]) -> None:
            del self.running[conversation]
            if conversation in self._again and not self._is_stopping.is_set():
                self._again.discard(conversation)
                self.learn(conversation)

        task.add_done_callback(ended)

    async def stop(self, grace_s: float) -> None:
        """Let running tasks finish within `grace_s`, then cancel them; a sweep learns the rest."""
        self._is_stopping.set()
        await end_tasks(self.running.values(), grace_s)

    async def _learn(self, conversation: Scope) -> None:
        """Learn, then call what follows learning until all of it is done; log every error."""
        # In a private chat learning is billed to the person, in a group to no person.
        payer = conversation.chat_id if conversation.is_private else NO_PERSON
        try:
            async with self._slots:
                began = LearningBegan(conversation)
                learning = observed(self.observe, began, LearningEnded, "learned")
                with billed_to(conversation, payer), learning:
                    done = await self.learn_from(conversation)
            log.info("learned", conversation=conversation.tag, **asdict(done))
            for _ in range(_MAX_AFTER):  # again until all of it is done, or more is to be learned
                if all([await after(conversation) for after in self.after]):
                    break
                with suppress(TimeoutError):
                    async with asyncio.timeout(self.after_again_s):
                        await self._is_stopping.wait()
                if self._is_stopping.is_set() or conversation in self._again:
                    break
        except (EmbeddingsUnavailable, InternalModelUnavailable, LearnerBusy, StoreError) as error:
            is_embedding = isinstance(error, EmbeddingsUnavailable)
            setting = "OPENAI_EMBEDDING_MODEL" if is_embedding else "OPENAI_MEMORY_MODEL"
            # A model that rests was logged as a warning when its rest began.
            rests = not isinstance(error, LearnerBusy | StoreError) and error.rests_s
            report = log.info if rests else log.warning
            report("learning postponed", conversation=conversation.tag, **reason_of(error, setting))
        except Exception:  # the outer fence: the sweep tries again
            log.exception("learning failed", conversation=conversation.tag)
