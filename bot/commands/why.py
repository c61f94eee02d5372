"""`/why`: what an answer rests on, with buttons that show the source and delete what is wrong.

As a reply it is about that answer, alone about the newest one. A 👎 on an answer asks the same.
The press of a button that shows a source waits in the mailbox like a message, so its answer is sent
once and in its place.
"""

from collections.abc import Mapping
from dataclasses import replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.fact_edits import FactEdits
from bot.commands.later_presses import message_of, put_press
from bot.commands.memory_deletion import MemoryDeletion, fact_id
from bot.commands.memory_entries import EDIT
from bot.commands.paged_list import ASK, CONFIRMED, PAGE, ListChange, ListContent, PagedList
from bot.commands.used_memories import SHOW, UsedMemories
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import NotConfirmed
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope

NAME = "why"


class WhyList:
    """The memories of one answer; `seq` is the answer's sequence."""

    actions: Mapping[str, str] = {SHOW: "buttons.source", ASK: "buttons.wrong"}

    def __init__(
        self, seq: int, used: UsedMemories, deletion: MemoryDeletion, access: Access
    ) -> None:
        self.verb = f"{NAME}:{seq}"
        self._seq = seq
        self._used = used
        self._deletion = deletion
        self._access = access

    async def content(self, language: str, conversation: Scope) -> ListContent:
        """Return the memories that are still there."""
        found = await self._used.read(language, conversation, self._seq)
        sentences = self._used.sentences
        above = () if found else (sentences.text(language, "why.nothing"),)
        return ListContent("why.used", [each.entry for each in found], above=above)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code or a person who may not change this memory."""
        await self._access.check(pressed, await self._deletion.senders(conversation, code))

    async def act(self, conversation: Scope, action: str, code: str) -> ListChange:
        """Delete a memory as /memory does; a recalled message is only not recalled any more."""
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        return await self._deletion.delete(conversation, code)


class WhyCommand:
    """Shows the list, and the source of one of its memories."""

    def __init__(
        self,
        used: UsedMemories,
        deletion: MemoryDeletion,
        edits: FactEdits,
        access: Access,
        mailbox: Mailbox,
    ) -> None:
        self._used = used
        self._deletion = deletion
        self._edits = edits
        self._access = access
        self._mailbox = mailbox
        self._sentences = used.sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command; its text names an answer and a memory if a button asked for it."""
        language = asked.sender.language
        if await self._access.is_off_record(conversation):
            return Answer(self._sentences.say(language, "off.no_memory"))
        seq, _, code = asked.text.partition(" ")
        if code and seq.isdecimal():
            return await self._source(asked, conversation, int(seq), code)
        answer = await self._used.find_answer(conversation, asked.replied_to)
        if answer is None:
            return Answer(self._sentences.say(language, "why.no_answer"))
        return await PagedList(self._list(answer.seq), self._sentences).show(asked, conversation)

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> tuple[Part, ...]:
        """Act on a button of the list."""
        await self._access.check_on_record(conversation)
        seq, _, pressed_on = rest.partition(":")
        if not seq.isdecimal():
            raise NotConfirmed("unknown")
        if pressed_on.startswith(SHOW):
            code, _, _ = pressed_on[len(SHOW) :].partition(".")
            asked = replace(message_of(pressed), text=f"{int(seq)} {code}", command=NAME)
            await put_press(self._mailbox, conversation, asked)
            return ()
        shown = self._list(int(seq))
        if not pressed_on.startswith(EDIT):
            return await PagedList(shown, self._sentences).press(pressed, conversation, pressed_on)
        code, _, page = pressed_on[len(EDIT) :].partition(".")
        await shown.check(pressed, conversation, code)
        await self._edits.ask(pressed, conversation, fact_id(code))
        return await PagedList(shown, self._sentences).press(
            pressed, conversation, f"{PAGE}.{page}"
        )

    async def _source(
        self, asked: IncomingMessage, conversation: Scope, seq: int, code: str
    ) -> Answer:
        language = asked.sender.language
        found = await self._used.read(language, conversation, seq)
        used = next((each for each in found if each.entry.code == code), None)
        if used is None:
            return Answer(self._sentences.say(language, "why.deleted"))
        if conversation.chat_id != asked.chat_id:
            # The group has become a supergroup, where these ids are other messages.
            used = replace(used, source=None)
        return Answer((self._used.source(language, used),))

    def _list(self, seq: int) -> WhyList:
        return WhyList(seq, self._used, self._deletion, self._access)
