"""The commands that everybody has; each answers from the catalogue and never asks the model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import structlog

from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.inbound import Inbound
from bot.telegram.values import BotIdentity
from memory.census import count_conversation
from memory.keys import Conversation
from memory.memory import Memory

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says, and whether it ends the sitting."""

    parts: tuple[Part, ...]
    ends_sitting: bool = False


Handler = Callable[[Inbound, Conversation], Awaitable[Answer]]


class GroupAdmins(Protocol):
    """Who may speak for a group."""

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Tell whether a person administers a group; raises `TelegramError`."""
        ...


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentences tell of this bot; `admins` are told of the operators' commands too."""

    me: BotIdentity
    admins: frozenset[int]
    ttl_days: int
    window_messages: int


class EveryonesCommands:
    """`/start /help /new /clear /forget /memory /privacy /ask`."""

    def __init__(
        self, memory: Memory, sentences: Sentences, telegram: GroupAdmins, facts: Facts
    ) -> None:
        self._memory = memory
        self._sentences = sentences
        self._telegram = telegram
        self._facts = facts

    @property
    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by command name, in the order of the menu."""
        return {
            "start": self.start,
            "help": self.help,
            "ask": self.ask,
            "new": self.new,
            "memory": self.memory,
            "clear": self.clear,
            "forget": self.forget,
            "privacy": self.privacy,
        }

    async def start(self, asked: Inbound, _: Conversation) -> Answer:
        """Welcome somebody and say what is remembered and how to erase it."""
        me = self._facts.me
        if asked.is_group:
            return self._say(asked, "start.group", username=me.username)
        return self._say(asked, "start.private", name=asked.sender.first_name, bot=me.name)

    async def help(self, asked: Inbound, _: Conversation) -> Answer:
        """List the commands."""
        if asked.is_group:
            return self._say(asked, "help.group", username=self._facts.me.username)
        if asked.sender.id in self._facts.admins:
            return self._say(asked, "help.private", "help.admin")
        return self._say(asked, "help.private")

    async def ask(self, asked: Inbound, _: Conversation) -> Answer:
        """Explain `/ask`; with words behind it, it is a question and never comes here."""
        return self._say(asked, "ask.empty")

    async def new(self, asked: Inbound, _: Conversation) -> Answer:
        """Start afresh: earlier messages leave the window, memory stays."""
        return Answer(self._sentences.say(asked.sender.language, "new.done"), ends_sitting=True)

    async def memory(self, asked: Inbound, conversation: Conversation) -> Answer:
        """Say how much of this conversation is stored."""
        census = await count_conversation(self._memory.client, self._memory.keys, conversation)
        if not census.messages:
            return self._say(asked, "memory.empty")
        return self._say(
            asked,
            "memory.summary",
            messages=census.messages,
            since=datetime.fromtimestamp(census.first_at, UTC).date().isoformat(),
            indexed=census.vectors,
            window=self._facts.window_messages,
        )

    async def clear(self, asked: Inbound, conversation: Conversation) -> Answer:
        """Ask before this conversation is erased; in a group only its admins may."""
        if asked.is_group and not await self._may_clear(asked):
            log.info("group clear refused", user=asked.sender.id)
            return self._say(asked, "clear.only_group_admins")
        census = await count_conversation(self._memory.client, self._memory.keys, conversation)
        nonce = await self._memory.erasure.ask(conversation, "clear", asked.sender.id)
        key = "clear.ask_group" if asked.is_group else "clear.ask"
        language = asked.sender.language
        return Answer(
            self._sentences.ask(language, key, f"clear:{nonce}", messages=census.messages)
        )

    async def forget(self, asked: Inbound, conversation: Conversation) -> Answer:
        """Ask before a person is erased everywhere."""
        nonce = await self._memory.erasure.ask(conversation, "forget", asked.sender.id)
        return Answer(self._sentences.ask(asked.sender.language, "forget.ask", f"forget:{nonce}"))

    async def privacy(self, asked: Inbound, _: Conversation) -> Answer:
        """Say what is stored, where it goes and for how long."""
        return self._say(asked, "privacy.text", ttl_days=self._facts.ttl_days)

    async def _may_clear(self, asked: Inbound) -> bool:
        # The anonymous admin account is no admin: anybody behind it could be meant.
        sender = asked.sender
        return sender.is_person and await self._telegram.is_group_admin(asked.chat_id, sender.id)

    def _say(self, asked: Inbound, *keys: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, *keys, **values))
