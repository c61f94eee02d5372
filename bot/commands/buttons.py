"""Buttons below the bot's messages: they act at once, without waiting for a turn.

Whatever was under way for what a button erases is refused later by the turn protocol.
"""

from collections.abc import Awaitable, Callable, Mapping

import structlog

from bot.commands.bot_command import ButtonHandler, ShownOnTop
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.chat import Chat
from bot.telegram.errors import TelegramError
from bot.telegram.late_edits import LateEdits
from bot.telegram.updates import ButtonPress
from memory.erasure.confirmations import Confirmations, NotConfirmed
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_CANCEL = "cancel"
_ALERTS: Mapping[str, str] = {"not_yours": "clear.not_yours", "off_record": "off.no_memory"}
"""What is shown on top of the chat for a press that changes nothing; the message stays."""

Resolve = Callable[[Scope], Awaitable[Scope]]
"""Returns where a conversation is stored: a group may have become a supergroup."""


class Buttons:
    """Finds the handler of a pressed button and shows what it returns in the button's place."""

    def __init__(
        self,
        handlers: Mapping[str, ButtonHandler],
        confirmations: Confirmations,
        resolve: Resolve,
        chat: Chat,
        sentences: Sentences,
    ) -> None:
        self._handlers = {**handlers, _CANCEL: self._cancel}
        self._confirmations = confirmations
        self._resolve = resolve
        self._chat = chat
        self._sentences = sentences
        self._late_edits = LateEdits(chat.edit)

    async def press(self, pressed: ButtonPress) -> None:
        """Act on a button.

        Raise `StoreError` or `TelegramError` with nothing shown, so that Telegram asks again.
        """
        here = await self._resolve(Scope.of_chat(pressed.chat_id, pressed.topic_id))
        verb, _, rest = pressed.callback_data.partition(":")
        try:
            shown = await self._act(pressed, here, verb, rest)
        except ShownOnTop as answer:
            await self._quietly(self._alert(pressed, answer.key))
            return
        except NotConfirmed as refusal:
            # An unknown verb may be any text of the person's; it stays out of the log.
            known = verb if verb in self._handlers else "unknown"
            log.info("button refused", verb=known, why=str(refusal))
            if alert := _ALERTS.get(str(refusal)):
                await self._quietly(self._alert(pressed, alert))
                return
            shown = self._sentences.say(pressed.sender.language, "clear.expired")
        await self._quietly(self._chat.answer_button(pressed.callback_id))
        for part in shown[:1]:
            await self._quietly(self._late_edits.edit(pressed.chat_id, pressed.message_id, part))

    async def stop(self) -> None:
        """Give up what is still to be shown; pressing again shows it."""
        await self._late_edits.stop()

    async def _act(
        self, pressed: ButtonPress, here: Scope, verb: str, rest: str
    ) -> tuple[Part, ...]:
        if verb not in self._handlers:
            raise NotConfirmed("unknown")
        return await self._handlers[verb](pressed, here, rest)

    async def _cancel(self, pressed: ButtonPress, here: Scope, rest: str) -> tuple[Part, ...]:
        """Withdraw a question; one that was confirmed is confirmed again, which finishes it."""
        nonce, _, action = rest.partition(":")
        if await self._confirmations.cancel(here, nonce, pressed.sender.id):
            return self._sentences.say(pressed.sender.language, "clear.cancelled")
        verb, _, detail = action.partition(":")
        if verb == _CANCEL:
            raise NotConfirmed("unknown")
        return await self._act(pressed, here, verb, f"{nonce}:{detail}" if detail else nonce)

    async def _alert(self, pressed: ButtonPress, key: str) -> None:
        part, *_ = self._sentences.say(pressed.sender.language, key)
        await self._chat.answer_button(pressed.callback_id, part.text)

    async def _quietly(self, call: Awaitable[None]) -> None:
        try:
            await call
        except TelegramError as error:
            log.warning("button not answered", reason=type(error).__name__)
