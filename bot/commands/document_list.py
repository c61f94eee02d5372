"""`/documents`: what files a conversation knows, each with a button that removes it."""

from dataclasses import replace

import structlog

from bot.commands.access import asker_of
from bot.commands.general import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.reply.render import render
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.call_context import may_change
from memory.documents.library import Library
from memory.erasure.confirmations import NotConfirmed
from memory.scopes.fields import Document
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

VERB = "doc"
"""First word of the buttons' callback data: `doc:<key>`."""

_LISTED = 15
_BUTTON_CHARS = 40


class DocumentList:
    """Shows documents and removes them; in a group whoever sent one may, and the admins."""

    def __init__(self, library: Library, sentences: Sentences, telegram: Chat) -> None:
        self._library = library
        self._sentences = sentences
        self._telegram = telegram

    async def show(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        return Answer(await self._listed(asked.sender.language, conversation))

    async def remove(self, pressed: ButtonPress, conversation: Scope, key: str) -> tuple[Part, ...]:
        """Erase a document and return the list as it is then; raise `NotConfirmed`."""
        known = {each.key: each for each in await self._library.listed(conversation)}
        if key in known:
            if not await may_change(asker_of(pressed, self._telegram), [known[key].sender_id]):
                raise NotConfirmed("not_yours")
            await self._library.remove(conversation, key)
            log.info("document removed")
        return await self._listed(pressed.sender.language, conversation)

    async def _listed(self, language: str, conversation: Scope) -> tuple[Part, ...]:
        found = (await self._library.listed(conversation))[:_LISTED]
        if not found:
            return self._sentences.say(language, "documents.none")
        title = self._sentences.text(language, "documents.listed")
        lines = (self._line(language, each) for each in found)
        *before, last = render("\n".join((title, "", *lines)))
        rows = tuple((self._button(language, each),) for each in found)
        return (*before, replace(last, buttons=rows))

    def _line(self, language: str, document: Document) -> str:
        return self._sentences.text(
            language,
            "documents.line",
            name=document.title,
            passages=document.passages,
            kb=max(1, round(document.nbytes / 1024)),
            date=self._sentences.day(language, document.added_at),
        )

    def _button(self, language: str, document: Document) -> Button:
        name = document.title
        short = name if len(name) <= _BUTTON_CHARS else f"{name[: _BUTTON_CHARS - 1]}…"
        label = f"{self._sentences.text(language, 'buttons.remove')}: {short}"
        return Button(label, f"{VERB}:{document.key}")
