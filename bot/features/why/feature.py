"""What `/why` and the marks add to the bot.

`/why` as a reply is about that answer, alone about the newest one. A 👎 on an answer asks the same.
The press of a button that shows a source waits in the mailbox like a message, so its answer is sent
once and in its place.
"""

import re
from collections.abc import Mapping
from dataclasses import replace

from bot.commands.bot_command import Answer, BotCommand
from bot.commands.correcting import MemoryDeletion, fact_id
from bot.commands.fact_edits import EDIT
from bot.commands.immediate import message_of, put_press
from bot.commands.paged_list import ASK, CONFIRMED, ListChange, ListContent, PagedList
from bot.commands.used_memories import SHOW, UsedMemories
from bot.feature import Feature, Services
from bot.features.why.marks import LearnedMarks
from bot.reply.parts import Button, Parts
from bot.telegram.updates import ButtonPress, IncomingMessage, ThumbsDown
from memory.erasure.questions import NotConfirmed
from memory.limits.quotas import Quota, Verdict
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.scopes.log import message_of as stored_message
from memory.scopes.log import seq_of
from memory.store.keys import Scope

_SEQ_AND_CODE = re.compile(r"\A\d{1,16} \S+")
"""What the command gets from a button: the sequence of an answer and the code of a memory."""


def feature(services: Services) -> Feature:
    """Return the feature; marks go before what they stand for is deleted."""
    memory = services.memory
    why = WhyCommand(services)
    marks = LearnedMarks(memory, services.chat)
    memory.correcting.fact_leaves.append(marks.leave_fact)
    memory.forgetting.messages_leave.append(marks.leave_messages)
    return Feature(
        name=NAME,
        commands=[
            BotCommand(
                NAME,
                why.answer,
                buttons={NAME: why.press},
                takes=_SEQ_AND_CODE,
                section="memory",
                uses_memory=True,
            )
        ],
        arrivals={ThumbsDown: why.read_thumbs_down},
        learned=[marks.show],
        erasing=[marks.leave_all],
    )


NAME = "why"
_ON_FIRST = 3  # the best ones; the others are on the next pages
_MAX_TOPICS = 20  # in how many topics, the newest first, a 👎 is looked for
_MAX_SEARCHED = 200  # among how many of the newest messages of each it is looked for
_LOOKS = Quota(6, window_ms=30_000)  # of one person: each may read thousands of messages


class WhyList:
    """The memories of one answer; `seq` is the answer's sequence."""

    actions: Mapping[str, str] = {SHOW: "buttons.source", ASK: "buttons.wrong"}

    def __init__(self, seq: int, used: UsedMemories, services: Services) -> None:
        self.verb = f"{NAME}:{seq}"
        self._seq = seq
        self._used = used
        self._deletion = MemoryDeletion(services.memory)
        self._edits = services.edits
        self._access = services.access

    async def content(self, language: str, conversation: Scope, _: int) -> ListContent:
        """Return the memories that are still there."""
        found = await self._used.read(language, conversation, self._seq)
        sentences = self._used.sentences
        above = () if found else (sentences.text(language, "why.nothing"),)
        # What has a source is called wrong below it.
        entries = [
            each.entry if SHOW in each.entry.without else replace(each.entry, without=ASK)
            for each in found
        ]
        has_sources = any(SHOW not in each.without for each in entries[:_ON_FIRST])
        footer = (sentences.text(language, "why.used_from"),) if has_sources else ()
        return ListContent("why.used", entries, above=above, footer=footer, on_first=_ON_FIRST)

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code or a person who may not change this memory."""
        await self._access.check(pressed, await self._deletion.senders(conversation, code))

    async def act(self, pressed: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        """Act as /memory does; a recalled message is not deleted, only not recalled any more."""
        if action == EDIT:
            await self._edits.ask(pressed, here, fact_id(code))
            return ListChange()
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        return await self._deletion.delete(here, code)


class WhyCommand:
    """Shows the list, and the source of one of its memories."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._memory, self._sentences = services.memory, services.sentences
        self._used = UsedMemories(services.memory.histories, services.sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command; its text names an answer and a memory if a button asked for it."""
        seq, _, code = asked.text.partition(" ")
        if code and seq.isdecimal():
            return await self._source(asked, conversation, int(seq), code)
        answer = await self._answer_of(conversation, asked.replied_to)
        if answer is None:
            key = "why.no_answer" if asked.replied_to else "why.nothing_yet"
            return Answer(self._sentences.say(asked.sender.language, key))
        return await self._list(answer.seq).show(asked, conversation)

    async def _answer_of(self, conversation: Scope, message_id: int) -> Message | None:
        """Return the answer that this message shows or got, the newest one for 0; None if gone."""
        messages = (await ChatHistory.read(self._memory.histories, conversation)).messages
        answers = [each for each in reversed(messages) if each.role == "assistant"]
        if message_id:
            named = {each.exchange for each in messages if message_id in each.message_ids}
            answers = [each for each in answers if each.exchange in named]
        return next(iter(answers), None)

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> Parts:
        """Act on a button of the list."""
        seq, _, pressed_on = rest.partition(":")
        if not seq.isdecimal():
            raise NotConfirmed("unknown")
        if pressed_on.startswith(SHOW):
            code, _, _ = pressed_on[len(SHOW) :].partition(".")
            asked = replace(message_of(pressed), text=f"{int(seq)} {code}", command=NAME)
            await put_press(self._memory.mailbox, conversation, asked)
            return ()
        return await self._list(int(seq)).press(pressed, conversation, pressed_on)

    async def read_thumbs_down(self, thumbs_down: ThumbsDown) -> IncomingMessage | None:
        """Read a 👎 on one of our newest answers as the command in reply to it, else None.

        Telegram does not say in which topic the message stands, so our log is searched for it.
        Raise `StoreError`.
        """
        memory, chat_id = self._memory, thumbs_down.chat_id
        who, turn = f"{NAME}:{thumbs_down.sender.id}", str(thumbs_down.update_id)
        if await memory.quotas.admit(who, turn, _LOOKS) is not Verdict.ADMITTED:
            return None
        tags = await memory.client.call("HKEYS", memory.keys.person(thumbs_down.sender.id))
        spoken_in = (Scope(tag.decode()) for tag in tags)
        topics = {each.topic_id for each in spoken_in if each.chat_id == chat_id} - {0}
        for topic_id in (0, *sorted(topics, reverse=True)[:_MAX_TOPICS]):
            scope = await memory.mailbox.resolve(Scope.of_chat(chat_id, topic_id))
            if await self._got_answer(thumbs_down, scope):
                sent_at, message_id = thumbs_down.sent_at, thumbs_down.message_id
                asked = replace(message_of(thumbs_down), sent_at=sent_at, topic_id=topic_id)
                return replace(asked, command=NAME, replied_to=message_id)
        return None

    async def _got_answer(self, thumbs_down: ThumbsDown, conversation: Scope) -> bool:
        """Return whether the message is an answer there; in a group, one to this person.

        Otherwise everybody's 👎 in a group would be answered.
        """
        memory = self._memory
        log = memory.keys.scope(conversation).log
        entries = await memory.client.call("XREVRANGE", log, "+", "-", "COUNT", _MAX_SEARCHED)
        messages = [stored_message(seq_of(entry), fields) for entry, fields in entries]
        sent_as = (each for each in messages if thumbs_down.message_id in each.message_ids)
        exchanges = {each.exchange for each in sent_as if each.role == "assistant"}
        return any(
            message.exchange in exchanges
            and (not thumbs_down.is_group or message.sender_id == thumbs_down.sender.id)
            for message in messages
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
        part = self._used.source(language, used)
        if ASK not in used.entry.without:
            data = f"{NAME}:{seq}:{ASK}{code}.0.{asked.topic_id}"
            wrong = Button(self._sentences.text(language, "buttons.wrong"), data)
            part = replace(part, buttons=((wrong,),))
        return Answer((part,))

    def _list(self, seq: int) -> PagedList:
        return PagedList(WhyList(seq, self._used, self._services), self._sentences)
