"""`/privacy`: what is stored, where it goes and for how long."""

from dataclasses import replace

from bot.commands.access import asker_of
from bot.commands.bot_command import Answer, BotCommand
from bot.feature import Feature, Services
from bot.reply.parts import Button, Parts
from bot.reply.render import render
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.context import may_change
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope

_NAME, _MORE = "privacy", "more"


def feature(services: Services) -> Feature:
    """Return the feature."""
    privacy = PrivacyCommand(services)
    command = BotCommand(_NAME, privacy.answer, buttons={_NAME: privacy.press}, section="data")
    return Feature(name=_NAME, commands=(command,))


class PrivacyCommand:
    """Says what is stored, first in short, and in full below a button; features add their parts."""

    def __init__(self, services: Services) -> None:
        self._ttl_days = services.settings.memory_ttl_days
        self._keys = ["privacy.text"] + ["privacy.access"] * (services.settings.access != "open")
        self._chat = services.chat
        self._sentences = services.sentences
        self._features = services.features

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._said(asked, conversation, in_full=False))

    async def press(self, pressed: ButtonPress, conversation: Scope, action: str) -> Parts:
        """Say it in full."""
        if action != _MORE:
            raise NotConfirmed("unknown")
        return await self._said(pressed, conversation, in_full=True)

    async def _said(
        self, asked: IncomingMessage | ButtonPress, conversation: Scope, *, in_full: bool
    ) -> Parts:
        language, text = asked.sender.language, self._sentences.text
        keys = self._keys if in_full else ["privacy.short"]
        texts = [text(language, key, ttl_days=self._ttl_days) for key in keys]
        more = Button(text(language, "buttons.more"), f"{_NAME}:{_MORE}")
        rows = [] if in_full else [(more,)]
        parts = [part for each in self._features for part in each.privacy]
        if parts and await may_change(asker_of(asked, self._chat)):
            for part in parts:
                said, button = await part(language, conversation)
                texts.append(said)
                rows.append((button,))
        *_, last = render("\n\n".join(texts))
        return (replace(last, buttons=tuple(rows)),)
