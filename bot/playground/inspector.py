"""The inspector: the latest turns, what is stored, and how to erase it.

It observes turns and erases as an operator may. It never takes part in a turn.

One log of turns for this and `/inspect` was built. It took 5 lines more, and put 142 into the core:
they share five numbers of a run; the rest is words here, and steps, errors and reports there.
"""

import asyncio
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from bot.playground.key_dump import KeyDump, dump_keys
from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import BOT, PageChat, PageMessage, PagePerson, Scene
from bot.playground.turn_trace import TurnTrace
from bot.prompt.assemble import Prompt
from bot.turn.observers import AgentRan, BotServing, Event
from memory.behaviors.context import AgentContext
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
class MemoryView:
    """The newest entries of each kind, newest first, and the reminders, the next first."""

    receipts: tuple[LearnedFrom, ...] = ()
    facts: tuple[Fact, ...] = ()
    reminders: tuple[WorkItem, ...] = ()
    messages: Mapping[int, Message] | None = None  # of this chat, by sequence
    texts: Mapping[int, str] | None = None  # of all facts


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
    return MemoryView(
        tuple(receipts[:_MAX_RECEIPTS]),
        tuple(facts[: -_MAX_FACTS - 1 : -1]),
        tuple(await memory.work.list_open(conversation)),
        messages,
        {fact.id: fact.text for fact in facts},
    )


_MAX_TURNS = 20
"""Turns kept of each conversation."""

_MAX_RESTORED = 400
"""Remembered messages shown in a chat after a restart."""


class Inspector:
    """Keeps the latest turns and reads the store."""

    def __init__(self, telegram: PageTelegram, scene: Scene) -> None:
        self._telegram = telegram
        self._scene = scene
        self.memory: Memory | None = None
        self.serving = asyncio.Event()
        self._prompt: Callable[[AgentContext], Prompt] | None = None
        self._restored = False
        self._began_at = time.time()
        self._turns: defaultdict[Scope, deque[TurnTrace]]
        self._turns = defaultdict(lambda: deque(maxlen=_MAX_TURNS))

    def observe(self, event: Event) -> None:
        """Note the memory of the bot once it serves, and keep each run of the agent."""
        match event:
            case BotServing():
                self.memory, self._prompt = event.memory, event.prompt
                self.serving.set()
            case AgentRan() if self._prompt:
                turns = self._turns[event.context.conversation]
                number = turns[-1].number + 1 if turns else 1
                turns.append(TurnTrace(number, event, self._prompt(event.context)))

    def turns(self, place: PageChat) -> list[TurnTrace]:
        """Return the turns of a place, newest first."""
        return list(reversed(self._turns[place.conversation]))

    def turn_of(self, place: PageChat, message_id: int) -> TurnTrace | None:
        """Return the turn that answered a message."""
        turns = self.turns(place)
        return next((turn for turn in turns if message_id in turn.asked.message_ids), None)

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
        sender = BOT
        if message.role == "user":
            person = self._scene.person(str(message.sender_id))
            sender = person or PagePerson(message.sender_id, message.sender_name)
        number = telegram_id_of(message)
        place.remembered_id = max(place.remembered_id, number)
        place.put(PageMessage(number, sender, message.text, int(message.sent_at)))

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
        self._telegram.updates.clear()
        self._telegram.files.clear()
        if self.memory is not None:
            keys = self.memory.keys
            shards = [("ZRANGE", index, 0, -1) for index in keys.conversations]
            found = await self.memory.client.pipeline(shards)
            people = [place.chat_id for place in self._scene if not place.is_group]
            await self._erase([Scope(tag.decode()) for tags in found for tag in tags], people)
        for place in self._scene:
            self._empty(place)
        self._scene.remove_guest()

    async def remove_guest(self) -> None:
        """Erase the made-up year and take its person off the page; raise `StoreError`."""
        guest = self._scene.guest
        if guest is not None:
            await self._erase([guest.conversation], [guest.chat_id])
            self._empty(guest)
            self._scene.remove_guest()

    async def _erase(self, conversations: list[Scope], people: list[int]) -> None:
        if self.memory is None:
            return
        for scope in (*conversations, *map(Scope.of_person, people)):
            await (await ChatHistory.read(self.memory.histories, scope)).clear()
        unlinks = [("UNLINK", self.memory.keys.person(person)) for person in people]
        await self.memory.client.pipeline(unlinks)

    def _empty(self, place: PageChat) -> None:
        place.empty()
        self._turns.pop(place.conversation, None)
        self._telegram.note_change()


def telegram_id_of(message: Message) -> int:
    """Return the id of a stored message in its chat; a made-up one has only its sequence."""
    return max(message.message_ids, default=message.seq)
