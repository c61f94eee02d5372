"""`/privacy`: what is stored, and the button that lets the operator look for an hour."""

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, with_buttons
from bot.telegram.updates import ButtonPress, IncomingMessage
from config.settings import Settings
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.operator_look import OperatorLook
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ALLOW, _END = "on", "off"


class PrivacyCommand:
    """Says what is stored, where it goes and for how long.

    `look` is None if the operator has no page to look at. In a group only administrators may press
    the button.
    """

    verb = "look"

    def __init__(
        self, settings: Settings, look: OperatorLook | None, access: Access, sentences: Sentences
    ) -> None:
        self._ttl_days = settings.memory_ttl_days
        self._keys = ["privacy.text"] + ["privacy.access"] * (settings.access != "open")
        self._look = look
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._said(asked.sender.language, conversation))

    async def press(
        self, pressed: ButtonPress, conversation: Scope, action: str
    ) -> tuple[Part, ...]:
        """Let the operator look for an hour, or take that permission back."""
        await self._access.check(pressed)
        if self._look is None or action not in (_ALLOW, _END):
            raise NotConfirmed("unknown")
        change = self._look.allow if action == _ALLOW else self._look.end
        await change(conversation, pressed.update_id)
        log.info("operator may look", conversation=conversation.tag, allowed=action == _ALLOW)
        return await self._said(pressed.sender.language, conversation)

    async def _said(self, language: str, conversation: Scope) -> tuple[Part, ...]:
        values: dict[str, object] = {"ttl_days": self._ttl_days}
        if self._look is None:
            return self._sentences.say(language, *self._keys, **values)
        until = await self._look.until(conversation)
        key, label, action = "privacy.look", "buttons.let_look", _ALLOW
        if until:
            key, label, action = "privacy.looking", "buttons.end_look", _END
            values |= self._sentences.local(language, until, "")
        parts = self._sentences.say(language, *self._keys, key, **values)
        button = Button(self._sentences.text(language, label), f"{self.verb}:{action}")
        return with_buttons(parts, button)
