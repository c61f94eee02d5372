"""What the panel shows of a chat's memory: receipts, facts with their history, reminders."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from memory.memory import Memory
from memory.message import Message
from memory.scopes.entries import Fact
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.work.item import WorkItem

_MAX_RECEIPTS = 20
_MAX_FACTS = 60


@dataclass(frozen=True, slots=True)
class LearnedFrom:
    """A message, and the facts that rest on it."""

    message: Message
    facts: tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class ReminderToCome:
    """A reminder, and when it is due in the person's zone, in words."""

    reminder: WorkItem
    local_time: str


@dataclass(frozen=True, slots=True)
class MemoryView:
    """The newest entries of each kind, newest first, and the reminders, the next first.

    `messages` has the messages of this chat by their sequence, `texts` the texts of all facts.
    """

    receipts: tuple[LearnedFrom, ...] = ()
    facts: tuple[Fact, ...] = ()
    reminders: tuple[ReminderToCome, ...] = ()
    messages: Mapping[int, Message] | None = None
    texts: Mapping[int, str] | None = None


async def read_memory(memory: Memory, conversation: Scope) -> MemoryView:
    """Return what is remembered in a chat; raise `StoreError`."""
    history = await ChatHistory.read(memory.histories, conversation)
    facts = (await memory.scopes.read(conversation.facts_scope)).facts
    rest_on: dict[int, list[Fact]] = {}
    for fact in facts:
        for source in fact.sources:
            if source.tag == conversation.tag:
                rest_on.setdefault(source.seq, []).append(fact)
    messages = {message.seq: message for message in history.messages}
    receipts = [
        LearnedFrom(messages[seq], tuple(rest_on[seq]))
        for seq in sorted(rest_on, reverse=True)
        if seq in messages
    ]
    reminders = await memory.work.list_open(conversation)
    return MemoryView(
        tuple(receipts[:_MAX_RECEIPTS]),
        tuple(facts[: -_MAX_FACTS - 1 : -1]),
        tuple(ReminderToCome(each, _local_time(each)) for each in reminders),
        messages,
        {fact.id: fact.text for fact in facts},
    )


def _local_time(reminder: WorkItem) -> str:
    zone = ZoneInfo(reminder.zone) if reminder.zone else UTC
    return f"{datetime.fromtimestamp(reminder.due, zone):%A, %-d %B %Y, %H:%M}"
