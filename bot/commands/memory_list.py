"""`/memory`: what is remembered here, a page at a time; a button each deletes it, after a question.

Shows one scope only: the conversation, and in a private chat the facts of the person. Who may
delete what is said in `memory.ownership`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from secrets import token_hex

import structlog

from bot.commands.access import asker_of
from bot.commands.general import Answer, admins_only
from bot.commands.memory_entries import Line, MemoryLines
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part
from bot.reply.render import render
from bot.telegram.chat import Chat
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.call_context import facts_scope, may_change
from memory.documents.library import Library
from memory.erasure.confirmations import NotConfirmed
from memory.memory import Memory
from memory.scopes.entries import Fact
from memory.scopes.history import ChatHistory
from memory.scopes.provenance import senders_of
from memory.scopes.stats import count_conversation
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

VERB = "mem"
"""First word of the buttons' callback data: `mem:<kind><id>.<page>.<topic>`.

With "a" before the kind it asks whether to delete that memory; without, it deletes it.
"""

_SWITCHES = ("off", "on")
_PER_PAGE = 8
_PER_ROW = 4
_MAX_SEQS = 3
"""Messages that a button can name within Telegram's 64 bytes."""
_MAX_ID = 2**63 - 1
"""Of a message or a record; beyond it Redis refuses the command."""

Row = tuple[Button, ...]


@dataclass(frozen=True, slots=True)
class _Place:
    """Which page of whose memories, for whom."""

    conversation: Scope
    topic_id: int
    page: int
    language: str


class MemoryPages:
    """Shows and deletes memories, turns remembering off and on."""

    def __init__(
        self, memory: Memory, sentences: Sentences, telegram: Chat, window_messages: int
    ) -> None:
        self._memory = memory
        self._library = Library(memory.store, memory.scopes)
        self._sentences = sentences
        self._telegram = telegram
        self._window_messages = window_messages

    async def show(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer `/memory`, `/memory off` and `/memory on`."""
        language, wanted = asked.sender.language, asked.text.strip().lower()
        if not wanted:
            place = _Place(conversation, asked.topic_id, 0, language)
            return Answer((await self._page(place),))
        if wanted not in _SWITCHES:
            return self._not_understood(language, wanted)
        if not await may_change(asker_of(asked, self._telegram)):
            log.info("group switch refused", user=asked.sender.id)
            key = admins_only(asked, "memory.only_group_admins")
            return Answer(self._sentences.say(language, key))
        switch = self._memory.switch
        await (switch.turn_off if wanted == "off" else switch.turn_on)(conversation)
        log.info("memory switched", to=wanted)
        return Answer(self._sentences.say(language, f"memory.turned_{wanted}"))

    async def press(
        self, pressed: ButtonPress, conversation: Scope, behind: str
    ) -> tuple[Part, ...]:
        """Turn a page or delete a memory; return the page as it is then; raise `NotConfirmed`."""
        code, page, topic_id = _read(behind)
        if topic_id != pressed.topic_id:  # so old a message that its topic is not told any more
            raise NotConfirmed("unknown")
        place = _Place(conversation, topic_id, page, pressed.sender.language)
        if code == "p":
            return (await self._page(place),)
        await self._check(pressed, conversation, code.removeprefix("a"))
        if code[0] == "a":
            return (await self._question(place, code[1:]),)
        correcting, key = self._memory.correcting, code[1:]
        note, below = "memory.deleted", list[Row]()
        match code[0]:
            case "f":
                seqs = await correcting.delete_fact(conversation, int(key))
                if seqs:
                    note, below = "memory.fact_deleted", [self._keep_row(place, seqs)]
            case "k":
                await correcting.recall_again(conversation, list(_ids(key)))
                note = "memory.message_kept"
            case kind:
                note = await self._delete(conversation, kind, key)
        log.info("memory corrected", kind=code[0])
        return (await self._page(place, note, below),)

    async def _delete(self, conversation: Scope, kind: str, key: str) -> str:
        """Delete a memory that is no fact; return what is said of it; raise `NotConfirmed`."""
        match kind:
            case "x":
                await self._memory.correcting.delete_state(conversation)
                return "memory.state_deleted"
            case "s":
                await self._memory.correcting.delete_synopsis(conversation, int(key))
            case "d":
                await self._library.remove(conversation, key)
            case "r":
                forgetting = self._memory.forgetting
                await forgetting.erase_messages(conversation, {int(key)}, token_hex(8))
            case _:
                raise NotConfirmed("unknown")
        return "memory.deleted"

    async def _page(self, place: _Place, note: str = "", below: Sequence[Row] = ()) -> Part:
        """Return one page: what happened, what is stored, the memories, their buttons."""
        lines = await self._lines(place)
        pages = max(1, -(-len(lines) // _PER_PAGE))
        place = replace(place, page=min(place.page, pages - 1))
        first = place.page * _PER_PAGE
        shown = list(enumerate(lines[first : first + _PER_PAGE], start=first + 1))
        texts = [self._text(place, note)] if note else []
        texts += [] if place.page else [await self._counts(place)]
        if shown:
            title = self._text(place, "memory.learned", page=place.page + 1, pages=pages)
            listed = (self._text(place, line.key, number=n, **line.values) for n, line in shown)
            texts += [title, "\n".join(listed), *self._fact_ids(place, shown)]
        *_, last = render("\n\n".join(texts))
        rows = (*below, *self._delete_rows(place, shown), *self._turn_rows(place, pages))
        return replace(last, buttons=rows)

    async def _question(self, place: _Place, code: str) -> Part:
        """Ask whether to delete a memory; return the page if it is gone already."""
        lines = enumerate(await self._lines(place), start=1)
        asked = [(number, line) for number, line in lines if line.code == code]
        if not asked:
            return await self._page(place)
        ((number, line),) = asked
        title = self._text(place, "memory.delete_ask")
        *_, last = render(f"{title}\n\n{self._text(place, line.key, number=number, **line.values)}")
        row = (
            Button(self._text(place, "buttons.delete"), _data(code, place)),
            Button(self._text(place, "buttons.keep_it"), _data("p", place)),
        )
        return replace(last, buttons=(row,))

    async def _lines(self, place: _Place) -> list[Line]:
        here = await self._memory.scopes.read(place.conversation)
        facts = await self._memory.scopes.read(facts_scope(place.conversation))
        history = await ChatHistory.read(self._memory.histories, place.conversation)
        refused = [message for message in history.messages if message.is_refused]
        return MemoryLines(self._sentences, place.language).list(here, facts, refused)

    def _fact_ids(self, place: _Place, shown: Sequence[tuple[int, Line]]) -> list[str]:
        """Return what the number behind a fact is for, with one that is on the page."""
        ids = [line.values["id"] for _, line in shown if line.key == "memory.fact"]
        return [self._text(place, "memory.fact_ids", id=ids[0])] if ids else []

    async def _counts(self, place: _Place) -> str:
        memory = self._memory
        stats = await count_conversation(memory.client, memory.keys, place.conversation)
        switch = self._text(place, "memory.is_off" if stats.is_off else "memory.is_on")
        if not stats.messages:
            return "\n\n".join((self._text(place, "memory.empty"), switch))
        summary = self._text(
            place,
            "memory.summary",
            messages=stats.messages,
            since=self._sentences.day(place.language, stats.first_at),
            indexed=stats.vectors,
            window=self._window_messages,
        )
        return f"{summary}\n\n{switch}"

    def _delete_rows(self, place: _Place, shown: Sequence[tuple[int, Line]]) -> list[Row]:
        buttons = [Button(f"✕ {number}", _data(f"a{line.code}", place)) for number, line in shown]
        return [tuple(buttons[at : at + _PER_ROW]) for at in range(0, len(buttons), _PER_ROW)]

    def _turn_rows(self, place: _Place, pages: int) -> list[Row]:
        neighbours = (("‹", place.page - 1), ("›", place.page + 1))
        row = tuple(
            Button(f"{sign} {page + 1}", _data("p", replace(place, page=page)))
            for sign, page in neighbours
            if 0 <= page < pages
        )
        return [row] if row else []

    def _keep_row(self, place: _Place, seqs: Sequence[int]) -> Row:
        named = ",".join(map(str, seqs[:_MAX_SEQS]))
        return (Button(self._text(place, "buttons.keep_message"), _data(f"k{named}", place)),)

    async def _check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for whoever may not change this memory."""
        senders = await self._senders(conversation, code)
        if not await may_change(asker_of(pressed, self._telegram), senders):
            raise NotConfirmed("not_yours")

    async def _senders(self, conversation: Scope, code: str) -> set[int]:
        """Return who said what a memory rests on; nobody for what rests on everybody's words."""
        kind, key = code[0], code[1:]
        if kind == "k":
            return await self._memory.correcting.senders(conversation, list(_ids(key)))
        if kind == "d":
            listed = await self._library.listed(conversation)
            return {each.sender_id for each in listed if each.key == key}
        scope_memory = await self._memory.scopes.read(facts_scope(conversation))
        fact = scope_memory.record(int(key)) if kind == "f" else None
        return senders_of(scope_memory, fact) if isinstance(fact, Fact) else set()

    def _not_understood(self, language: str, wanted: str) -> Answer:
        """Say what there is: a slip must not leave remembering on, or off, unnoticed."""
        near = get_close_matches(wanted, _SWITCHES, n=1)
        keys = ["memory.did_you_mean"] * len(near) + ["memory.usage"]
        return Answer(self._sentences.say(language, *keys, word="".join(near)))

    def _text(self, place: _Place, key: str, **values: object) -> str:
        return self._sentences.text(place.language, key, **values)


def _data(code: str, place: _Place) -> str:
    return f"{VERB}:{code}.{place.page}.{place.topic_id}"


def _ids(key: str) -> Iterator[int]:
    return map(int, key.split(","))


def _read(behind: str) -> tuple[str, int, int]:
    """Return code, page and topic; raise `NotConfirmed` for what was never ours."""
    try:
        code, page, topic_id = behind.split(".")
        kind, id_ = code.removeprefix("a")[:1], code.removeprefix("a")[1:]
        ids = id_.split(",") if kind == "k" else [id_]
        if not kind or (kind in "fskr" and not all(0 < int(id_) <= _MAX_ID for id_ in ids)):
            raise NotConfirmed("unknown")
        return code, max(0, int(page)), int(topic_id)
    except ValueError:
        raise NotConfirmed("unknown") from None
