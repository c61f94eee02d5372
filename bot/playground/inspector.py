"""What the bench knows beside the chats: each turn, what is stored, and how to start over.

It looks on and erases as an operator may; it never takes part in a turn.
"""

import time
from collections import defaultdict, deque
from dataclasses import dataclass
from functools import cached_property

from bot.model.call import PromptMessage
from bot.playground.bot_api import BotApiServer
from bot.playground.bot_api.chats import Message as ChatMessage
from bot.playground.bot_api.values import User
from bot.playground.scene import Place, Scene
from bot.turn.trace import TurnTrace
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.scopes.key_dump import KeyDump, dump_keys
from memory.search.message_search import SearchResult
from memory.store.keys import SHARDS, Scope

_MAX_TURNS = 20
"""Turns kept to be looked at, of each conversation."""

_MAX_RESTORED = 200
"""Remembered messages shown in a chat after a restart."""

_SECTION_END = "</memory>"


@dataclass(frozen=True)
class Turn:
    """A turn as the panel shows it; `number` counts in its conversation since the start."""

    number: int
    trace: TurnTrace

    @cached_property
    def parts(self) -> list[tuple[str, int]]:
        """What the prompt was made of, in its order, each with its tokens."""
        tokens = self.trace.prompt.tokens
        return [
            ("Tools", tokens.tools),
            ("System message", tokens.system),
            ("Recent messages", tokens.window),
            ("Memory", tokens.memory),
            ("Your message", tokens.words),
            ("Tool steps", tokens.steps),
        ]

    @cached_property
    def section(self) -> str:
        """The memory section; its tag is escaped wherever else it might stand."""
        words = next(m for m in reversed(self.trace.prompt.messages) if m.role == "user")
        section, end, _ = words.content.partition(_SECTION_END)
        return section + end if end else ""

    @property
    def sent(self) -> tuple[PromptMessage, ...]:
        """The messages of the last call."""
        return self.trace.prompt.messages

    @cached_property
    def recalled(self) -> list[SearchResult]:
        """What was recalled, best first."""
        return sorted(self.trace.recalled, key=lambda recollection: -recollection.score)


class Inspector:
    """Remembers the latest turns and looks into the store."""

    def __init__(self, telegram: BotApiServer, scene: Scene) -> None:
        self._telegram = telegram
        self._scene = scene
        self._memory: Memory | None = None
        self._restored = False
        self._began_at = time.time()
        self._turns: defaultdict[Scope, deque[Turn]] = defaultdict(lambda: deque(maxlen=_MAX_TURNS))

    def serving(self, memory: Memory) -> None:
        """Look into what the bot remembers with."""
        self._memory = memory

    def answered(self, trace: TurnTrace) -> None:
        """Keep a turn."""
        turns = self._turns[trace.conversation]
        turns.append(Turn(turns[-1].number + 1 if turns else 1, trace))

    def turns(self, place: Place) -> list[Turn]:
        """Return the turns of a place, newest first."""
        return list(reversed(self._turns[place.conversation]))

    def turn_of(self, place: Place, message_id: int) -> Turn | None:
        """Return the turn that answered a message."""
        turns = self.turns(place)
        return next((turn for turn in turns if message_id in turn.trace.words.message_ids), None)

    async def restore(self) -> None:
        """Show in the chats, once, what the bot remembers from before; raise `StoreError`."""
        if self._memory is None or self._restored:
            return
        self._restored = True
        for place in self._scene:
            history = await ChatHistory.read(self._memory.histories, place.conversation)
            for message in history.messages[-_MAX_RESTORED:]:
                self._show(place, message)

    def _show(self, place: Place, message: Message) -> None:
        """Put a message from before this start into its chat, under its id in Telegram."""
        if not message.message_ids or message.sent_at >= self._began_at:
            return
        sender = self._telegram.bot
        if message.role == "user":
            person = self._scene.person(str(message.sender_id))
            sender = person.user if person else User(message.sender_id, message.sender_name)
        number = max(message.message_ids)
        place.chat.closed = None
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

    async def stored(self, place: Place) -> list[tuple[str, list[KeyDump]]]:
        """Return what Redis holds, by whose it is; raise `StoreError`."""
        if self._memory is None:
            return []
        scopes = [("This conversation", place.conversation)]
        if not place.is_group:
            person = Scope.of_person(place.speaker.id)
            scopes.append((f"{place.title} in private", person))
        client, keys = self._memory.client, self._memory.keys
        return [(title, await dump_keys(client, keys, scope)) for title, scope in scopes]

    async def start_over(self) -> None:
        """Erase all that was said and learned here, on both sides; raise `StoreError`."""
        updates = self._telegram.updates
        if updates.history:
            updates.confirm(updates.history[-1].id + 1)
        if self._memory is not None:
            await _erase(self._memory, [person.id for person in self._scene.people])
        for place in self._scene:
            await self._telegram.empty(place.chat)
            place.remembered_id = 0
        self._turns.clear()


async def _erase(memory: Memory, people: list[int]) -> None:
    """Clear every conversation that is known of, and each person's own scope."""
    client, keys = memory.client, memory.keys
    shards = [("ZRANGE", keys.conversations(shard), 0, -1) for shard in range(SHARDS)]
    tags = [tag.decode() for shard in await client.pipeline(shards) for tag in shard]
    scopes = [Scope(tag) for tag in tags] + [Scope.of_person(id_) for id_ in people]
    for scope in scopes:
        await (await ChatHistory.read(memory.histories, scope)).clear()
    await client.pipeline([("UNLINK", keys.person(id_)) for id_ in people])
