"""`/memory`: what is remembered here, with buttons that change each memory; `off` and `on`.

Shows one conversation, and in a private chat the person's facts.
"""

from collections.abc import Mapping
from difflib import get_close_matches

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.fact_edits import FactEdits
from bot.commands.memory_deletion import MemoryDeletion, fact_id
from bot.commands.memory_entries import EDIT, MemoryEntries
from bot.commands.paged_list import ASK, CONFIRMED, PAGE, ListChange, ListContent, PagedList
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.erasure.pause import MemorySwitch
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_SWITCHES = ("off", "on", "quiet")


class MemoryList:
    """Shows, edits and deletes memories, turns remembering off and on."""

    verb = "mem"
    actions: Mapping[str, str] = {ASK: "buttons.change_entry"}

    def __init__(
        self,
        entries: MemoryEntries,
        deletion: MemoryDeletion,
        edits: FactEdits,
        switch: MemorySwitch,
        access: Access,
    ) -> None:
        self._entries = entries
        self._deletion = deletion
        self._edits = edits
        self._switch = switch
        self._sentences = entries.sentences
        self._access = access
        self._list = PagedList(self, self._sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer `/memory`, `/memory off`, `/memory on` and `/memory quiet`."""
        language, argument = asked.sender.language, asked.text.strip().lower()
        if not argument:
            return await self._list.show(asked, conversation)
        if argument not in _SWITCHES:
            return self._not_understood(language, argument)
        if refusal := await self._access.refusal(asked, "memory"):
            return refusal
        if argument == "quiet":
            is_quiet = await self._switch.toggle_quiet(conversation, asked.update_id)
            key = "memory.marks_off" if is_quiet else "memory.marks_on"
            return Answer(self._sentences.say(language, key))
        await (self._switch.turn_off if argument == "off" else self._switch.turn_on)(conversation)
        log.info("memory switched", to=argument)
        return Answer(self._sentences.say(language, f"memory.turned_{argument}"))

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
        """Delete a memory."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        return await self._deletion.delete(conversation, code)

    def _not_understood(self, language: str, argument: str) -> Answer:
        """Name the arguments: a typing error must not leave memory on, or off, unnoticed."""
        near = get_close_matches(argument, _SWITCHES, n=1)
        keys = ["memory.did_you_mean"] * len(near) + ["memory.usage"]
        return Answer(self._sentences.say(language, *keys, word="".join(near)))
