"""Where a behavior is attached: a field of each conversation, and the reach that reads it."""

from collections.abc import Iterable
from dataclasses import dataclass

from memory.behaviors.behavior import AIContextBehavior, Reach
from memory.behaviors.learning_behavior import LearningBehavior
from memory.learning.progress import watermark_place
from memory.memory import Memory
from memory.scopes.changes import Write
from memory.scopes.fields import Field, Watermark
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import stays
from memory.store.keys import Scope


@dataclass(frozen=True, slots=True)
class Attached(Field):
    """A behavior runs in this conversation. The field holds the behavior's name and no words."""

    PREFIX = "attached"
    KEY = "behavior"
    behavior: str
    is_on: bool = True

    without = stays


@dataclass(frozen=True, slots=True, kw_only=True)
class WhereAttached(Reach):
    """The conversations to which a behavior is attached.

    Turns and learning ask for this after they have read the conversation. So the cache has what is
    stored now, and an attached behavior begins with the next message in every process.
    """

    scopes: Scopes
    behavior: str

    def covers(self, conversation: Scope) -> bool:
        """Return whether the behavior is attached to a conversation."""
        here = self.scopes.held(conversation)
        return here is not None and here.get(Attached, self.behavior) is not None


class Attachments:
    """Attaches `behaviors` to conversations, and detaches them."""

    def __init__(self, memory: Memory, behaviors: Iterable[AIContextBehavior]) -> None:
        self._scopes = memory.scopes
        self._store = memory.store
        self._learning = {
            each.name: each for each in behaviors if isinstance(each, LearningBehavior)
        }

    async def attached(self, conversation: Scope) -> set[str]:
        """Return the names of the attached behaviors; raise `StoreError`."""
        here = await self._scopes.read(conversation)
        return {each.behavior for each in here.all(Attached)}

    async def attach(self, conversation: Scope, behavior: str, *, is_on: bool = True) -> None:
        """Attach a behavior or, if not `is_on`, detach it; raise `StoreError`.

        It learns nothing of what was said before.
        """
        here = await self._scopes.read(conversation)
        learning = self._learning.get(behavior)
        if is_on and learning and here.get(Attached, behavior) is None:
            meta = self._store.keys.scope(conversation).meta
            newest = int(await self._store.client.call("HGET", meta, "next_seq") or 0)
            scope, learner = watermark_place(learning, conversation, here.generation)

            async def skip(_: ScopeMemory) -> Write:
                return Write(fields=[Watermark(learner, newest)])

            await self._scopes.update(scope, skip)

        async def decide(here: ScopeMemory) -> Write | None:
            is_known = here.get(Attached, behavior) is not None
            return None if is_known == is_on else Write(fields=[Attached(behavior, is_on)])

        await self._scopes.update(conversation, decide)
