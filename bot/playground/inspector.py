"""The inspector: the latest turns, what is stored, and how to erase it.

It observes turns and erases as an operator may. It never takes part in a turn.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from bot.model.call import PromptMessage
from bot.playground.bot_api import BotApiServer, ChatMessage, User
from bot.playground.scene import PageChat, Scene
from bot.playground.turn_trace import FoundMessage, TurnTrace, explained
from bot.prompt.assemble import Prompt
from bot.turn.observers import AgentRan, BotServing, Event
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.message import Message
from memory.scopes.entries import Fact
from memory.scopes.history import ChatHistory
from memory.scopes.key_dump import KeyDump, dump_keys
from memory.store.keys import SHARDS, Scope
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


_MAX_TURNS = 20
"""Turns kept of each conversation."""

_MAX_RESTORED = 400
"""Remembered messages shown in a chat after a restart."""

_SECTION_END = "</memory>"


@dataclass(frozen=True, slots=True)
class PromptPart:
    """A part of the prompt, with its share of all tokens in percent."""

    name: str
    tokens: int
    percent: float


@dataclass(frozen=True)
class Turn:
    """A turn as the panel shows it; `number` counts in its conversation since the start."""

    number: int
    trace: TurnTrace

    @cached_property
    def parts(self) -> list[PromptPart]:
        """The parts of the prompt in their order."""
        tokens = self.trace.prompt.tokens
        sizes = {
            "Tools": tokens.tools,
            "System message": tokens.system,
            "Recent messages": tokens.window,
            "Memory": tokens.memory,
            "Your message": tokens.message,
            "Tool steps": tokens.steps,
        }
        total = max(1, tokens.total)
        return [
            PromptPart(name, size, round(100 * size / total, 1)) for name, size in sizes.items()
        ]

    @cached_property
    def section(self) -> str:
        """The memory section of the prompt; empty if there is none."""
        message = next(m for m in reversed(self.trace.prompt.messages) if m.role == "user")
        section, end, _ = message.content.partition(_SECTION_END)
        return section + end if end else ""

    @property
    def sent(self) -> tuple[PromptMessage, ...]:
        """The messages of the last call."""
        return self.trace.prompt.messages

    @cached_property
    def recalled(self) -> list[FoundMessage]:
        """What was found in older messages and why, best first."""
        trace = self.trace
        found = sorted(trace.recalled, key=lambda result: -result.score)
        return [explained(each, trace.user_message.text, trace.reply) for each in found]


class Inspector:
    """Keeps the latest turns and reads the store."""

    def __init__(self, telegram: BotApiServer, scene: Scene) -> None:
        self._telegram = telegram
        self._scene = scene
        self.memory: Memory | None = None
        self.serving = asyncio.Event()
        self._prompt: Callable[[AgentContext], Prompt] | None = None
        self._restored = False
        self._began_at = time.time()
        self._turns: defaultdict[Scope, deque[Turn]] = defaultdict(lambda: deque(maxlen=_MAX_TURNS))

    def observe(self, event: Event) -> None:
        """Note the memory of the bot once it serves, and keep each run of the agent."""
        match event:
            case BotServing():
                self.memory, self._prompt = event.memory, event.prompt
                self.serving.set()
            case AgentRan() if self._prompt:
                self.keep(TurnTrace.of(event, self._prompt(event.context)))
            case _:
                pass

    def keep(self, trace: TurnTrace) -> None:
        """Keep a turn."""
        turns = self._turns[trace.conversation]
        turns.append(Turn(turns[-1].number + 1 if turns else 1, trace))

    def turns(self, place: PageChat) -> list[Turn]:
        """Return the turns of a place, newest first."""
        return list(reversed(self._turns[place.conversation]))

    def turn_of(self, place: PageChat, message_id: int) -> Turn | None:
        """Return the turn that answered a message."""
        turns = self.turns(place)
        return next(
            (turn for turn in turns if message_id in turn.trace.user_message.message_ids), None
        )

    async def restore(self) -> None:
        """Show in the chats, once, what the bot remembers from before; raise `StoreError`."""
        if self.memory is None or self._restored:
            return
        self._restored = True
        for place in self._scene:
            await self.show_stored(place)

    async def show_stored(self, place: PageChat) -> None:
        """Show the stored messages of a place in its chat; raise `StoreError`."""
        if self.memory is not None:
            history = await ChatHistory.read(self.memory.histories, place.conversation)
            for message in history.messages[-_MAX_RESTORED:]:
                self._show(place, message)

    def _show(self, place: PageChat, message: Message) -> None:
        """Put a message from before this start into its chat, under its id in Telegram."""
        if message.sent_at >= self._began_at:
            return
        sender = self._telegram.bot
        if message.role == "user":
            person = self._scene.person(str(message.sender_id))
            sender = person.user if person else User(message.sender_id, message.sender_name)
        number = telegram_id_of(message)
        place.remembered_id = max(place.remembered_id, number)
        place.chat.change(
            ChatMessage(
                place.chat,
                sender,
                message.text,
                topic_id=place.topic.id if place.topic else 0,
                id=number,
                sent_at=int(message.sent_at),
            )
        )

    async def kept(self, place: PageChat) -> MemoryView:
        """Return what is remembered here, as people know it; raise `StoreError`."""
        if self.memory is None:
            return MemoryView()
        return await read_memory(self.memory, place.conversation)

    async def stored(self, place: PageChat) -> list[tuple[str, list[KeyDump]]]:
        """Return what Redis holds, by scope; raise `StoreError`."""
        if self.memory is None:
            return []
        scopes = [("This conversation", place.conversation)]
        if not place.is_group:
            person = Scope.of_person(place.speaker.id)
            scopes.append((f"{place.title} in all private chats", person))
        client, keys = self.memory.client, self.memory.keys
        return [(title, await dump_keys(client, keys, scope)) for title, scope in scopes]

    async def start_over(self) -> None:
        """Erase all conversations and all that was learned; raise `StoreError`."""
        updates = self._telegram.updates
        if updates.history:
            updates.confirm(updates.history[-1].id + 1)
        if self.memory is not None:
            keys = self.memory.keys
            shards = [("ZRANGE", keys.conversations(shard), 0, -1) for shard in range(SHARDS)]
            found = await self.memory.client.pipeline(shards)
            people = [place.chat.id for place in self._scene if not place.is_group]
            await self._erase([Scope(tag.decode()) for tags in found for tag in tags], people)
        for place in self._scene:
            await self._empty(place)
        self._scene.remove_guest()

    async def remove_guest(self) -> None:
        """Erase the made-up year and take its person off the page; raise `StoreError`."""
        guest = self._scene.guest
        if guest is not None:
            await self._erase([guest.conversation], [guest.chat.id])
            await self._empty(guest)
            self._scene.remove_guest()

    async def _erase(self, conversations: list[Scope], people: list[int]) -> None:
        if self.memory is None:
            return
        for scope in (*conversations, *map(Scope.of_person, people)):
            await (await ChatHistory.read(self.memory.histories, scope)).clear()
        unlinks = [("UNLINK", self.memory.keys.person(person)) for person in people]
        await self.memory.client.pipeline(unlinks)

    async def _empty(self, place: PageChat) -> None:
        await self._telegram.empty(place.chat)
        place.remembered_id = 0
        self._turns.pop(place.conversation, None)


def telegram_id_of(message: Message) -> int:
    """Return the id of a stored message in its chat; a made-up one has only its sequence."""
    return max(message.message_ids, default=message.seq)
