"""`/privacy`: what is stored, where it goes and for how long."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.reply.render import render
from bot.telegram.updates import ButtonPress, IncomingMessage
from config.settings import Settings
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope

_NAME, _MORE = "privacy", "more"

PrivacyPart = Callable[[str, Scope], Awaitable[tuple[str, Button]]]
"""Returns what a feature says below `/privacy` to people who may change what is stored here.

It gets the language and the conversation, and returns a text and a button.
"""


class PrivacyCommand:
    """Says it first in short, and in full below a button; `parts` are those of features."""

    def __init__(
        self,
        settings: Settings,
        access: Access,
        sentences: Sentences,
        parts: Sequence[PrivacyPart] = (),
    ) -> None:
        self._ttl_days = settings.memory_ttl_days
        self._keys = ["privacy.text"] + ["privacy.access"] * (settings.access != "open")
        self._access = access
        self._sentences = sentences
        self._parts = parts
        self.command = BotCommand(_NAME, self.answer, buttons={_NAME: self.press}, section="data")

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        more = Button(
            self._sentences.text(asked.sender.language, "buttons.more"), f"{_NAME}:{_MORE}"
        )
        return Answer(await self._said(asked, conversation, ["privacy.short"], more))

    async def press(
        self, pressed: ButtonPress, conversation: Scope, action: str
    ) -> tuple[Part, ...]:
        """Say it in full."""
        if action != _MORE:
            raise NotConfirmed("unknown")
        return await self._said(pressed, conversation, self._keys)

    async def _said(
        self,
        asked: IncomingMessage | ButtonPress,
        conversation: Scope,
        keys: Sequence[str],
        *buttons: Button,
    ) -> tuple[Part, ...]:
        language = asked.sender.language
        texts = [self._sentences.text(language, key, ttl_days=self._ttl_days) for key in keys]
        rows = [(button,) for button in buttons]
        if self._parts and await self._access.may_change(asked):
            for part in self._parts:
                text, button = await part(language, conversation)
                texts.append(text)
                rows.append((button,))
        *_, last = render("\n\n".join(texts))
        return (replace(last, buttons=tuple(rows)),)
