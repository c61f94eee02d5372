"""The button below `/privacy` that lets the operator look at a conversation for an hour."""

import structlog

from bot.commands.access import Access
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, with_buttons
from bot.reply.render import render
from bot.telegram.updates import ButtonPress
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.operator_look import OperatorLook
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ALLOW, _END = "on", "off"


class LookPermission:
    """Gives the permission and takes it back; in a group only administrators may."""

    verb = "look"

    def __init__(self, look: OperatorLook, access: Access, sentences: Sentences) -> None:
        self._look = look
        self._access = access
        self._sentences = sentences

    async def part(self, language: str, conversation: Scope) -> tuple[str, Button]:
        """Return whether the operator may look now, and the button that changes it."""
        until = await self._look.until(conversation)
        key, label, action = "privacy.look", "buttons.let_look", _ALLOW
        values: dict[str, object] = {}
        if until:
            key, label, action = "privacy.looking", "buttons.end_look", _END
            values = self._sentences.local(language, until, "")
        button = Button(self._sentences.text(language, label), f"{self.verb}:{action}")
        return self._sentences.text(language, key, **values), button

    async def press(
        self, pressed: ButtonPress, conversation: Scope, action: str
    ) -> tuple[Part, ...]:
        """Let the operator look for an hour, or take that permission back; show how it is now."""
        await self._access.check(pressed)
        if action not in (_ALLOW, _END):
            raise NotConfirmed("unknown")
        change = self._look.allow if action == _ALLOW else self._look.end
        await change(conversation, pressed.update_id)
        log.info("operator may look", conversation=conversation.tag, allowed=action == _ALLOW)
        text, button = await self.part(pressed.sender.language, conversation)
        return with_buttons(render(text), button)
