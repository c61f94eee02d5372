"""Who may use a command or change a memory: every check of commands and buttons is here.

The rule for memories is in `memory.behaviors.context`. Telegram is asked who administers a
group only if the rule depends on it.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial

import structlog

from bot.commands.bot_command import Answer, BotCommand, ButtonHandler, ShownOnTop
from bot.commands.sentences import Sentences
from bot.reply.parts import Parts
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from config.settings import Settings
from memory.behaviors.context import Asker, may_change
from memory.erasure.questions import NotConfirmed
from memory.queue.open_turn import is_off_record
from memory.store.keys import Scope
from memory.store.store import Store

log = structlog.get_logger(__name__)


class Operators:
    """The people in `ADMIN_USER_IDS`, and the language of their last `/start` or admin command."""

    def __init__(self, store: Store, settings: Settings) -> None:
        self._settings = settings
        self._client = store.client
        self._key = store.keys.admins

    def __contains__(self, sender: Sender) -> bool:
        return sender.is_person and sender.id in self._settings.admin_user_ids

    async def note_language(self, sender: Sender) -> None:
        """Remember the language for what operators are told later; raise `StoreError`."""
        await self._client.call("HSET", self._key, sender.id, sender.language)

    async def languages(self) -> dict[int, str]:
        """Return the language of each, by id in order, English if unknown; raise `StoreError`."""
        ids = sorted(self._settings.admin_user_ids)
        found = await self._client.call("HMGET", self._key, *ids) if ids else ()
        return {id_: (each or b"en").decode() for id_, each in zip(ids, found, strict=True)}


def asker_of(asked: IncomingMessage | ButtonPress, chat: Chat) -> Asker:
    """Return who asks for a change.

    The anonymous admin account does not count as an admin: it could be any of them.
    """
    sender = asked.sender

    async def is_admin() -> bool:
        return sender.is_person and await chat.is_group_admin(asked.chat_id, sender.id)

    return Asker(sender.id, asked.is_group, is_admin)


class Access:
    """Checks people before commands and buttons act."""

    def __init__(
        self, chat: Chat, sentences: Sentences, operators: Operators, store: Store
    ) -> None:
        self._chat = chat
        self._sentences = sentences
        self.operators = operators
        self.is_off_record = partial(is_off_record, store)

    async def check_on_record(self, conversation: Scope) -> None:
        """Raise `ShownOnTop` if the talk is off the record: no memory is read or changed then."""
        if await self.is_off_record(conversation):
            raise ShownOnTop("off.no_memory")

    async def refusal(self, asked: IncomingMessage, command: str) -> Answer | None:
        """Return what to say if only a group's administrators may do this, else `None`.

        An anonymous admin is asked to write as themselves. Raise `TelegramError`.
        """
        if await may_change(asker_of(asked, self._chat)):
            return None
        log.info("group command refused", command=command, user=asked.sender.id)
        is_anonymous = asked.is_anonymous_admin
        key = "error.anonymous_admin" if is_anonymous else f"{command}.only_group_admins"
        return Answer(self._sentences.say(asked.sender.language, key))

    async def check(self, pressed: ButtonPress, senders: Iterable[int] = ()) -> None:
        """Raise `NotConfirmed` unless a person may change what rests on the senders' words.

        No senders: it rests on everybody's words. Raise `TelegramError`.
        """
        if not await may_change(asker_of(pressed, self._chat), senders):
            raise NotConfirmed("not_yours")

    def guarded(self, command: BotCommand) -> BotCommand:
        """Return the command with the checks that its declaration asks for."""
        buttons = {
            verb: partial(self._press, command, button) for verb, button in command.buttons.items()
        }
        return replace(command, handler=partial(self._answer, command), buttons=buttons)

    async def _answer(
        self, command: BotCommand, asked: IncomingMessage, conversation: Scope
    ) -> Answer:
        language, user = asked.sender.language, asked.sender.id
        if command.audience == "operators":
            is_operator = asked.sender in self.operators
            if not is_operator or asked.is_group:
                log.warning("admin command refused", command=command.name, user=user)
                key = "admin.only_private" if is_operator else "admin.not_admin"
                return Answer(self._sentences.say(language, key))
            log.info("admin command", command=command.name, user=user)
            await self.operators.note_language(asked.sender)
        elif command.uses_memory and await self.is_off_record(conversation):
            return Answer(self._sentences.say(language, "off.no_memory"))
        elif command.group_admins_only and (refused := await self.refusal(asked, command.name)):
            return refused
        return await command.handler(asked, conversation)

    async def _press(
        self,
        command: BotCommand,
        button: ButtonHandler,
        pressed: ButtonPress,
        here: Scope,
        rest: str,
    ) -> Parts:
        if command.audience == "operators":
            if pressed.is_group or pressed.sender not in self.operators:
                raise NotConfirmed("not_yours")
        elif command.group_admins_only:
            await self.check(pressed)
        if command.uses_memory:
            await self.check_on_record(here)
        return await button(pressed, here, rest)
