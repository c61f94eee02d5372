"""`RunningState`: what is kept in mind of a conversation, however long it lasts.

It is learned after replies and shown to the model with every message. It stays small, so prompts
do not grow with the conversation.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

import orjson
import structlog
from pydantic import BaseModel

from memory.behaviors.context import CallContext
from memory.behaviors.knowledge_base import (
    NAMES,
    UNKNOWN,
    DomainRefused,
    KnowledgeBase,
    bounded,
    knowledge_base_model,
    known,
    known_json,
    merged_domain,
    read,
    updated,
)
from memory.behaviors.learning_behavior import (
    PROMPTS,
    Batch,
    Cadence,
    Learned,
    LearningBehavior,
    PartRejected,
)
from memory.message import Message
from memory.scopes.changes import NotWritten, Write
from memory.scopes.fields import State
from memory.scopes.scopes import Scopes
from memory.text.untrusted_text import UNTRUSTED_MARK

log = structlog.get_logger(__name__)

HEADING = "State of this conversation (JSON):"
BACK = "Back after"
AWAY_S = 3 * 86_400  # who writes on Friday evening and on Monday morning was not away


class RunningState(LearningBehavior):
    """Keeps a `KnowledgeBase` of each conversation; `domain` is an operator's own part of it."""

    name = "running_state"
    instructions = PROMPTS["running_state"]["instructions"].format(state=HEADING, back=BACK)

    def __init__(
        self,
        scopes: Scopes,
        domain: type[BaseModel] | None = None,
        cadence: Cadence | None = None,
        on_refusal: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._scopes = scopes
        self._on_refusal = on_refusal
        self.cadence = cadence or Cadence()
        self.model = knowledge_base_model(domain)
        self.part: type[BaseModel] = self.model
        parts = ("task", "domain") if domain else ("task",)
        self.task = " ".join(PROMPTS["running_state"][each] for each in parts)

    def with_domain(self, state: str, update: str) -> str:
        """Return a state with the domain fields that a tool has set; unchanged if refused."""
        try:
            return merged_domain(self.model, state, update)
        except DomainRefused as error:
            log.warning("domain refused", reason=str(error))
            self._on_refusal("tool")
            return state

    async def on_conversation_created(self, call_context: CallContext) -> None:
        """Start the state of a private conversation with the person's names in Telegram."""
        speaker = call_context.speaker
        named = bounded(self.model(first_name=speaker.first_name, last_name=speaker.last_name))
        if not call_context.conversation.is_private or not known(named):
            return
        scope_memory = await self._scopes.current(call_context.conversation)
        if scope_memory.state:
            return
        with suppress(NotWritten):  # the scope was written or erased in between
            await self._scopes.write(scope_memory, Write(fields=[State(named.model_dump_json())]))
        # Read it again, so that this turn already knows the names.
        await self._scopes.read(call_context.conversation)

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return what is known, after some days with the matter that is open; "" for nothing."""
        scope_memory = await self._scopes.current(call_context.conversation)
        state = read(self.model, scope_memory.state)
        texts = []
        if text := known_json(state):
            call_context.used["x"] = text
            texts.append(text)
        # The stored messages tell whether a person comes back: a turn that begins again asks again,
        # and the next turn does not.
        matter = next(iter((*state.open_problems, *state.current_goals)), "")
        earlier = reversed(scope_memory.messages.messages)
        last_at = next((each.sent_at for each in earlier if each.role == "user"), None)
        is_asked = call_context.conversation.is_private and not scope_memory.is_off
        if matter and last_at is not None and new_messages and is_asked:
            away_s = new_messages[0].sent_at - last_at
            if away_s >= AWAY_S:
                quoted = orjson.dumps(matter).decode()
                texts.append(f"{BACK} {away_s // 86_400:.0f} days, still open: {quoted}")
        mark = f" {UNTRUSTED_MARK}" if scope_memory.is_state_untrusted else ""
        # Indented lines belong to the line before them, so a full prompt shows both or none.
        entry = "\n  ".join(f"{text}{mark}" for text in texts)
        return f"{HEADING}\n{entry}" if entry else ""

    def prompt_input(self, batch: Batch) -> str:
        """Return the present state."""
        return known_json(read(self.model, batch.here.state)) or "(nothing is known yet)"

    def learn(self, batch: Batch, answer: KnowledgeBase) -> Learned:
        """Return the new state; raise `PartRejected` for one that would wipe what was learned.

        Of names only those that the person wrote or has in Telegram are learned; in a group both
        stay unknown. If `domain` cannot be kept, the model is asked once more and told why. If it
        cannot be kept then either, the rest is learned.
        """
        old = read(self.model, batch.here.state)
        if not known(answer) and not known(old).keys() <= set(NAMES):
            raise PartRejected("it knows nothing any more")
        names = dict.fromkeys(NAMES, UNKNOWN)
        if batch.conversation.is_private:
            # A name that only the assistant, a tool or a document mentioned is not the person's.
            of_person = [
                f"{message.sender_name} {message.text}"
                for message in batch.messages
                if message.role == "user" and message.is_first_party
            ]
            own = " ".join(of_person).casefold()
            doubtful = [name for name in NAMES if getattr(answer, name).casefold() not in own]
            names = {name: getattr(old, name) for name in doubtful}
        new = answer.model_copy(update=names)
        try:
            state = updated(old, new)
        except DomainRefused as error:
            self._on_refusal("learning")
            if not batch.refusal:
                raise PartRejected("domain refused", tell=str(error)) from error
            log.warning("domain refused", reason=str(error))
            state = updated(old, new.model_copy(update={"domain": None}))
        as_json = state.model_dump_json()
        has_changed = known(state) and as_json != batch.here.state
        is_untrusted = batch.holds_untrusted or batch.here.is_state_untrusted
        return Learned(state=as_json if has_changed else None, is_untrusted=is_untrusted)
