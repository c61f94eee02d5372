"""Lets the operator look at one conversation for an hour, if its people allow it.

The permission is stored in the conversation. It ends after its hour, when it is taken back, and
with every erasure of the conversation or of a person in it.
"""

from collections.abc import Callable
from pathlib import Path
from time import time
from typing import TypeAlias

import structlog

from bot.commands.access import Access
from bot.commands.sentences import Sentences
from bot.commands.used_memories import UsedMemories
from bot.reply.parts import Button, Parts, with_buttons
from bot.reply.render import render
from bot.telegram.updates import ButtonPress
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from memory.store.store import Scripts

log = structlog.get_logger(__name__)

SeenMessage: TypeAlias = tuple[Message, list[str]]
"""A message, and for an answer the memories that it used, one line each."""

_MAX_MESSAGES = 20
_LANGUAGE = "en"
_LUA = Path(__file__).parent / "lua"
LOOK_S = 3600
_MAX_LISTED = 100
_ALLOW, _END = "on", "off"


class OperatorLook:
    """The permissions of conversations; in a group administrators give them and take them back."""

    verb = "look"

    def __init__(
        self,
        memory: Memory,
        access: Access,
        sentences: Sentences,
        clock: Callable[[], float] = time,
    ) -> None:
        self._access = access
        self._memory = memory
        self._client = memory.client
        self._keys = memory.keys
        self._set_look = Scripts(memory.client, _LUA)["set_look"]
        self._sentences = sentences
        self._used = UsedMemories(memory.histories, sentences)
        self._clock = clock

    async def allow(self, conversation: Scope, update_id: int) -> None:
        """Let the operator look for an hour; a repeat of an older update changes nothing."""
        until = self._clock() + LOOK_S
        # The list is written first. `allowed` takes out entries without a permission.
        looks = self._keys.looks
        listing = [("ZADD", looks, until, conversation.tag), ("EXPIRE", looks, 2 * LOOK_S)]
        await self._client.pipeline(listing)
        await self._set(conversation, update_id, until)

    async def end(self, conversation: Scope, update_id: int) -> None:
        """Take the permission back."""
        await self._set(conversation, update_id, 0)
        await self._client.call("ZREM", self._keys.looks, conversation.tag)

    async def until(self, conversation: Scope) -> float:
        """Return until when the operator may look, in Unix seconds; 0 if that is not allowed."""
        stored = await self._client.call("HGET", self._keys.scope(conversation).meta, "look")
        _, _, until_ms = (stored or b"").partition(b"|")
        until = int(until_ms or 0) / 1000
        return until if until > self._clock() else 0.0

    async def allowed(self) -> list[tuple[Scope, float]]:
        """Return the conversations at which the operator may look, and until when."""
        tags = await self._client.call(
            *("ZRANGEBYSCORE", self._keys.looks, self._clock(), "+inf", "LIMIT", 0, _MAX_LISTED)
        )
        listed = [Scope(tag.decode()) for tag in tags]
        found = [(scope, await self.until(scope)) for scope in listed]
        gone = [scope.tag for scope, until in found if not until]
        if gone:
            await self._client.call("ZREM", self._keys.looks, *gone)
        return [(scope, until) for scope, until in found if until]

    async def part(self, language: str, conversation: Scope) -> tuple[str, Button]:
        """Return whether the operator may look now, and the button that changes it."""
        until = await self.until(conversation)
        key, label, action = "privacy.look", "buttons.let_look", _ALLOW
        values: dict[str, object] = {}
        if until:
            key, label, action = "privacy.looking", "buttons.end_look", _END
            zone = (await self._memory.scopes.read(conversation.facts_scope)).zone
            values = self._sentences.local(language, until, zone)
        button = Button(self._sentences.text(language, label), f"{self.verb}:{action}")
        return self._sentences.text(language, key, **values), button

    async def press(self, pressed: ButtonPress, conversation: Scope, action: str) -> Parts:
        """Let the operator look for an hour, or take that permission back; show how it is now."""
        await self._access.check(pressed)
        if action not in (_ALLOW, _END):
            raise NotConfirmed("unknown")
        change = self.allow if action == _ALLOW else self.end
        await change(conversation, pressed.update_id)
        log.info("operator may look", conversation=conversation.tag, allowed=action == _ALLOW)
        text, button = await self.part(pressed.sender.language, conversation)
        return with_buttons(render(text), button)

    async def read(self, conversation: Scope) -> tuple[float, list[SeenMessage]] | None:
        """Return until when it is allowed and the newest messages, oldest first; else None."""
        if not await self.until(conversation):
            return None
        history = await ChatHistory.read(self._memory.histories, conversation)
        newest = history.messages[-_MAX_MESSAGES:]
        messages = [(each, await self._memories(conversation, each)) for each in newest]
        # Once more, because the people may have ended it while we read.
        until = await self.until(conversation)
        log.info("operator looked", conversation=conversation.tag, shown=bool(until))
        return (until, messages) if until else None

    async def _memories(self, conversation: Scope, message: Message) -> list[str]:
        if message.role != "assistant" or not message.rests_on_memory:
            return []
        used = await self._used.read(_LANGUAGE, conversation, message.seq)
        lines = []
        for number, each in enumerate(used, 1):
            values = {"number": number, **each.entry.values}
            parts = self._sentences.say(_LANGUAGE, each.entry.key, **values)
            lines.append(" ".join(part.text for part in parts))
        return lines

    async def _set(self, conversation: Scope, update_id: int, until: float) -> None:
        ttl_s = self._memory.store.ttl_s
        request = {"update_id": update_id, "until": int(until * 1000), "ttl_s": ttl_s}
        await self._set_look(self._keys.scope(conversation), request)
