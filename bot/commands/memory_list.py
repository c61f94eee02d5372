"""`/memory`: what is remembered here, with buttons that change each memory.

Shows one conversation, and in a private chat the person's facts.
"""

from collections.abc import Mapping

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.fact_edits import FactEdits
from bot.commands.memory_deletion import MemoryDeletion, fact_id
from bot.commands.memory_entries import EDIT, MOVE, PIN, UNPIN, MemoryEntries
from bot.commands.memory_settings import MemorySettings
from bot.commands.paged_list import ASK, CONFIRMED, PAGE, ListChange, ListContent, PagedList
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.store.keys import Scope


class MemoryList:
    """Shows, edits and deletes memories."""

    verb = "mem"
    actions: Mapping[str, str] = {ASK: "buttons.change_entry"}

    def __init__(
        self,
        entries: MemoryEntries,
        deletion: MemoryDeletion,
        edits: FactEdits,
        settings: MemorySettings,
        access: Access,
    ) -> None:
        self._entries = entries
        self._deletion = deletion
        self._edits = edits
        self._settings = settings
        self._sentences = entries.sentences
        self._access = access
        self._list = PagedList(self, self._sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Show the list; with an argument, change a setting."""
        if asked.text.strip():
            return await self._settings.answer(asked, conversation)
        await self._entries.look(conversation, asked.update_id)
        return await self._list.show(asked, conversation)

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> tuple[Part, ...]:
        """Act on a button of the list; the question for a new wording comes below it."""
        if not rest.startswith(EDIT):
            return await self._list.press(pressed, conversation, rest)
        code, _, page = rest.removeprefix(EDIT).partition(".")
        shown = await self._list.press(pressed, conversation, f"{PAGE}.{page}")
        await self.check(pressed, conversation, code)
        await self._edits.ask(pressed, conversation, fact_id(code))
        return shown

    async def content(self, language: str, conversation: Scope) -> ListContent:
        """Return what is remembered."""
        return await self._entries.content(language, conversation)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code or a person who may not change this memory."""
        await self._access.check(pressed, await self._deletion.senders(conversation, code))

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Delete a memory, pin it, or move it."""
        if action == MOVE:
            await self._access.check_on_record(conversation)
            return await self._deletion.move(conversation, code)
        if action in (PIN, UNPIN):
            await self._access.check_on_record(conversation)
            return await self._deletion.pin(conversation, code, is_pinned=action == PIN)
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        return await self._deletion.delete(conversation, code)
