"""Parts of the behaviors' tests: messages, scope memories, batches."""

from collections.abc import Mapping, Sequence
from zoneinfo import ZoneInfo

from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import CallContext, Person
from memory.behaviors.learning_behavior import Batch
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import ScopeEntry, written
from memory.scopes.log import StreamDelta
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope

DAY = 86_400
NOW = 1_763_700_000.0  # 21 November 2025
ANNA = Person(7, "Anna", "Berg")
PRIVATE = Scope.of_chat(7)
GROUP = Scope.of_chat(-100)


def call_context(conversation: Scope = PRIVATE, speaker: Person = ANNA) -> CallContext:
    return CallContext(conversation, speaker, NOW, zone=ZoneInfo("America/Los_Angeles"))


def said(
    seq: int, text: str, *, is_first_party: bool = True, at: float = NOW, tokens: int = 10
) -> Message:
    """Return a message of a person; two messages make an exchange."""
    return Message(
        seq=seq,
        exchange=(seq + 1) // 2,
        role="user",
        text=text,
        sent_at=at,
        sender_id=ANNA.id,
        sender_name="Anna",
        tokens=tokens,
        is_first_party=is_first_party,
    )


def answered(seq: int, text: str, *, at: float = NOW, tokens: int = 10) -> Message:
    return Message(seq, (seq + 1) // 2, "assistant", text, at, tokens=tokens)


def scope_memory(
    *entries: ScopeEntry, state: str = "", scope: Scope = PRIVATE, epoch: str = "3"
) -> ScopeMemory:
    """Return a scope memory with these entries; ids start at 1."""
    filled = ScopeMemory(scope, (epoch, "0"))
    stored = [
        (at, dict(zip((b"k", b"j"), (kind.encode(), content), strict=True)))
        for at, (kind, content) in enumerate(map(written, entries), start=1)
    ]
    fields = {"state": state} if state else {}
    filled.fields = fields
    filled.add(StreamDelta(stored, len(stored)))
    return filled


def batch(
    *messages: Message,
    here: ScopeMemory | None = None,
    facts: ScopeMemory | None = None,
    conversation: Scope = PRIVATE,
    digests: Mapping[int, str] | None = None,
) -> Batch:
    return Batch(
        conversation=conversation,
        messages=messages,
        digests=digests or {},
        here=here or scope_memory(scope=conversation),
        facts=facts or scope_memory(scope=Scope.of_person(ANNA.id)),
        now=NOW,
    )


async def store_entries(scopes: Scopes, scope: Scope, *entries: ScopeEntry) -> None:
    """Write entries to a scope as learning does; ids continue."""
    await scopes.write(await scopes.read(scope), Write(entries))
    await scopes.read(scope)


async def shown(behavior: AIContextBehavior, text: str, at: CallContext | None = None) -> str:
    """Return the text of a behavior for a message of a person."""
    return await behavior.on_model_invoke(at or call_context(), [said(0, text)])


def texts(entries: Sequence[ScopeEntry]) -> list[str]:
    return [getattr(entry, "text", type(entry).__name__) for entry in entries]
