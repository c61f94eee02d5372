"""`AgentContext`: what one run of the agent works with, for one conversation.

The history persists; everything else lives as long as the run.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from memory.behaviors.call_context import CallContext
from memory.behaviors.steps import CompletedStep
from memory.message import NOTHING_SAID, Message
from memory.scopes.history import ChatHistory, HistoryParts
from memory.scopes.writes import ToolWrite
from memory.search.recollection import Recollection
from memory.store.keys import Scope
from memory.text.speakers import Speakers


@dataclass(slots=True)
class AgentContext:
    """One run: the conversation's history, what was just said, what was recalled, the steps so far.

    `now` is in Unix seconds. `words` is the person's current message, not yet in the history.
    `window`, `recalled` and `told` (what behaviors have to say) are what the prompt is made of
    besides. `speakers` names the people of a group, and is missing in private. `writes` is what
    tools want written once the reply is sent.
    """

    conversation: Scope
    chat_history: ChatHistory
    now: float
    words: Message = NOTHING_SAID
    is_group: bool = False
    speakers: Speakers | None = None
    window: tuple[Message, ...] = ()
    recalled: tuple[Recollection, ...] = ()
    told: str = ""
    call_context: CallContext | None = None
    completed_steps: list[CompletedStep] = field(default_factory=list)
    writes: list[ToolWrite] = field(default_factory=list)

    @classmethod
    async def get_or_create(
        cls, context_keys: Mapping[str, object], parts: HistoryParts, *, now: float
    ) -> "AgentContext":
        """Return the context of exactly these keys, whatever their order.

        Equal keys give the same history in every process; a conversation that never was is empty.
        """
        history = await ChatHistory.read(parts, Scope.of_keys(context_keys))
        return cls(history.conversation, history, now)
