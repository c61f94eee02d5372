"""The commands that everybody has; each answers from the catalogue and never asks the model."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from bot.commands.access import asker_of
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.bot_account import BotIdentity
from bot.telegram.chat import Chat
from bot.telegram.updates import IncomingMessage
from memory.behaviors.call_context import is_first_party, may_change
from memory.memory import Memory
from memory.scopes.stats import count_conversation
from memory.store.keys import Scope

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a command says, and whether it ends the sitting."""

    parts: tuple[Part, ...]
    ends_session: bool = False


Handler = Callable[[IncomingMessage, Scope], Awaitable[Answer]]


def admins_only(asked: IncomingMessage, key: str) -> str:
    """Return the key of the sentence for somebody who may not speak for a group.

    An anonymous admin may, but nobody can tell whether it is one: they have to show themselves.
    """
    return "error.anonymous_admin" if asked.is_anonymous_admin else key


@dataclass(frozen=True, slots=True)
class Facts:
    """What the sentences tell of this bot; `admins` are told of the operators' commands too."""

    me: BotIdentity
    admins: frozenset[int]
    ttl_days: int


class EveryonesCommands:
    """`/start /help /new /clear /forget /privacy /ask`."""

    def __init__(self, memory: Memory, sentences: Sentences, telegram: Chat, facts: Facts) -> None:
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
            "clear": self.clear,
            "forget": self.forget,
            "privacy": self.privacy,
        }

    async def start(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Welcome somebody and say what is remembered and how to erase it."""
        me = self._facts.me
        if asked.is_group:
            return self._say(asked, "start.group", username=me.username)
        return self._say(asked, "start.private", name=asked.sender.first_name, bot=me.name)

    async def help(self, asked: IncomingMessage, _: Scope) -> Answer:
        """List the commands."""
        if asked.is_group:
            return self._say(asked, "help.group", username=self._facts.me.username)
        if asked.sender.id in self._facts.admins:
            return self._say(asked, "help.private", "help.admin")
        return self._say(asked, "help.private")

    async def ask(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Explain `/ask`; with words behind it, it is a question and never comes here."""
        return self._say(asked, "ask.empty")

    async def new(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Start afresh: earlier messages leave the window, memory stays."""
        return Answer(self._sentences.say(asked.sender.language, "new.done"), ends_session=True)

    async def clear(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before this conversation is erased; in a group only its admins may."""
        if not await may_change(asker_of(asked, self._telegram)):
            log.info("group clear refused", user=asked.sender.id)
            return self._say(asked, admins_only(asked, "clear.only_group_admins"))
        stats = await count_conversation(self._memory.client, self._memory.keys, conversation)
        nonce = await self._memory.erasure.ask(conversation, "clear", asked.sender.id)
        key = "clear.ask_group" if asked.is_group else "clear.ask"
        language = asked.sender.language
        return Answer(self._sentences.ask(language, key, f"clear:{nonce}", messages=stats.messages))

    async def forget(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before a person is erased everywhere; as a reply, before that message is."""
        if asked.replied_to:
            return await self._forget_message(asked, conversation)
        nonce = await self._memory.erasure.ask(conversation, "forget", asked.sender.id)
        return Answer(self._sentences.ask(asked.sender.language, "forget.ask", f"forget:{nonce}"))

    async def privacy(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say what is stored, where it goes and for how long."""
        return self._say(asked, "privacy.text", ttl_days=self._facts.ttl_days)

    async def _forget_message(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before one message is erased: one's own, in private also one of ours."""
        found = await self._memory.forgetting.found(conversation, asked.replied_to)
        if not found:
            return self._say(asked, "forget.message_unknown")
        if asked.is_group and not is_first_party(asked.sender.id, [found[0].sender_id]):
            log.info("foreign message not forgotten", user=asked.sender.id)
            return self._say(asked, "forget.message_not_yours")
        about = ",".join(str(message.seq) for message in found)
        nonce = await self._memory.erasure.ask(conversation, "messages", asked.sender.id, about)
        key = "forget.message_ask" if found[0].sender_id else "forget.answer_ask"
        return Answer(self._sentences.ask(asked.sender.language, key, f"unsay:{nonce}"))

    def _say(self, asked: IncomingMessage, *keys: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, *keys, **values))
