"""Shows a list in a chat: numbered lines, a page at a time, with buttons for each line.

Every list of the bot is shown by this class; a `ListSource` says what is in it and what its buttons
do. Pressing a button replaces the message, so a list is always shown as it is now.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Protocol

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Button, Part, Parts
from bot.reply.render import render
from bot.telegram.updates import ButtonPress, IncomingMessage, Sender
from memory.erasure.questions import NotConfirmed
from memory.store.keys import Scope

ASK = "a"  # the action that asks whether to do `CONFIRMED`, which cannot be undone, or another
CONFIRMED = "x"
PAGE = "p"  # the action that shows a page of the list

SWITCH = "w"  # the action of the buttons that are about the whole list

PER_PAGE = 8
_PER_ROW = 4
_SWITCHES = 2  # their labels are longer

ButtonRow = tuple[Button, ...]


@dataclass(frozen=True, slots=True)
class ListEntry:
    """One line.

    A code has no dot. With the verb, the page and the topic it has to fit Telegram's 64 bytes.
    Where the list asks about this entry alone, it offers the `choices` and shows the `details`.
    """

    code: str  # names it in callback data
    key: str  # of its sentence, which gets `{number}`
    values: Mapping[str, object] = field(default_factory=dict)
    without: str = ""  # the letters of the actions that it has no button for
    choices: Mapping[str, str] = field(default_factory=dict)  # beside deleting: labels by letter
    details: Sequence[str] = ()
    group: str = ""  # the key of a sentence above all entries with it, which gets `{count}`
    source: str = ""  # the callback data of a button there that shows where it comes from


@dataclass(frozen=True, slots=True)
class ListContent:
    """What a list shows now; all paragraphs are Markdown."""

    title: str  # the key of a sentence, which gets `{count}`; the page's place follows
    entries: Sequence[ListEntry]
    above: Sequence[str] = ()  # paragraphs before the title of the first page
    below: Sequence[str] = ()  # after the lines of every page
    footer: Sequence[str] = ()  # the last paragraphs of the first page
    switches: Mapping[str, str] = field(default_factory=dict)  # its last buttons: labels by code
    on_first: int = 0  # if given, the first page has so many entries and "More"
    ask: str = "lists.delete_ask"  # the question before an entry is deleted
    confirm: str = "buttons.delete"  # the label of its yes


@dataclass(frozen=True, slots=True)
class ListChange:
    """What an action did: the sentence `note`, and buttons offered for it: label key and code."""

    note: str = ""
    offers: Mapping[str, str] = field(default_factory=dict)


class ListSource(Protocol):
    """One list: its entries and what its buttons do."""

    verb: str  # the first word of its callback data
    actions: Mapping[str, str]  # of each entry's buttons: a letter, and the key of the label

    async def content(self, language: str, conversation: Scope, by: int) -> ListContent:
        """Return what is in the list now, for the person `by`; raise `StoreError`."""

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code or a person who may not act on the entry."""

    async def act(self, pressed: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        """Do what a button says, after `check`; raise `NotConfirmed` for an unknown action."""


@dataclass(frozen=True, slots=True)
class _Page:
    """Which page of the list, where, and for whom."""

    conversation: Scope
    topic_id: int
    sender: Sender
    number: int = 0


class PagedList:
    """Shows one list with `show` and acts on its buttons with `press`."""

    def __init__(self, source: ListSource, sentences: Sentences) -> None:
        self._source = source
        self._sentences = sentences

    async def show(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer a command with the first page."""
        page = _Page(conversation, asked.topic_id, asked.sender)
        return Answer((await self._shown(page),))

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> Parts:
        """Turn the page or act on an entry; return the page as it is then."""
        try:
            named, number, topic_id = rest.split(".")
            page = _Page(conversation, int(topic_id), pressed.sender, max(0, int(number)))
        except ValueError:
            raise NotConfirmed("unknown") from None
        action, code = named[:1], named[1:]
        # Telegram no longer names the topic of an old message.
        if page.topic_id != pressed.topic_id:
            raise NotConfirmed("unknown")
        if action == PAGE:
            return (await self._shown(page),)
        await self._source.check(pressed, conversation, code)
        if action == ASK:
            return (await self._question(page, code),)
        change = await self._source.act(pressed, conversation, action, code)
        return (await self._shown(page, change),)

    async def _shown(self, page: _Page, change: ListChange | None = None) -> Part:
        content = await self._content(page)
        change = change or ListChange()
        on_first = content.on_first or PER_PAGE
        rest = max(0, len(content.entries) - on_first)
        pages = 1 + -(-rest // PER_PAGE)
        page = replace(page, number=min(page.number, pages - 1))
        first = on_first + (page.number - 1) * PER_PAGE if page.number else 0
        end = first + (PER_PAGE if page.number else on_first)
        entries = list(enumerate(content.entries[first:end], start=first + 1))
        texts = [] if page.number else [*content.above]
        note = self._text(page, change.note) if change.note else ""
        if note not in "\n".join((*texts, *content.footer)):  # unless the page says it
            texts.insert(0, note)
        if entries:
            title = self._text(page, content.title, count=len(content.entries))
            place = self._text(page, "lists.place", page=page.number + 1, pages=pages)
            texts.append(f"{title} {place}" if pages > 1 else title)
        sizes = Counter(each.group for each in content.entries)
        for group, few in groupby(entries, key=lambda numbered: numbered[1].group):
            heading = [self._text(page, group, count=sizes[group])] if group else []
            lines = (self._text(page, each.key, number=at, **each.values) for at, each in few)
            texts.append("\n".join((*heading, *lines)))
        texts += content.below if entries else ()
        texts += [] if page.number else content.footer
        *_, last = render("\n\n".join(texts))
        offers = change.offers.items()
        rows: list[ButtonRow] = [(self._button(page, *offer, CONFIRMED),) for offer in offers]
        rows += self._entry_rows(page, entries)
        if rest and not page.number and content.on_first:
            label = f"{self._text(page, 'buttons.more')} ({rest})"
            rows.append((Button(label, self._data(replace(page, number=1), PAGE)),))
        else:
            near = (("‹", page.number - 1), ("›", page.number + 1))
            others = [(sign, replace(page, number=at)) for sign, at in near if 0 <= at < pages]
            pager = [Button(f"{sign} {to.number + 1}", self._data(to, PAGE)) for sign, to in others]
            rows += [tuple(pager)] if pager else []
        if content.switches and not page.number:
            row = [self._button(page, key, code, SWITCH) for code, key in content.switches.items()]
            rows += [tuple(row[at : at + _SWITCHES]) for at in range(0, len(row), _SWITCHES)]
        return replace(last, buttons=tuple(rows))

    async def _content(self, page: _Page) -> ListContent:
        return await self._source.content(page.sender.language, page.conversation, page.sender.id)

    async def _question(self, page: _Page, code: str) -> Part:
        """Ask whether to act on an entry; return the page if the entry is already gone."""
        content = await self._content(page)
        numbered = enumerate(content.entries, start=1)
        found = [(number, entry) for number, entry in numbered if entry.code == code]
        if not found:
            return await self._shown(page)
        [(number, entry)] = found
        title = "lists.change_ask" if entry.choices else content.ask
        line = self._text(page, entry.key, number=number, **entry.values)
        *_, last = render("\n\n".join((self._text(page, title), line, *entry.details)))
        choices = [
            (self._button(page, label, code, action),) for action, label in entry.choices.items()
        ]
        if entry.source:
            choices.append((Button(self._text(page, "buttons.show_source"), entry.source),))
        row = (
            self._button(page, content.confirm, code, CONFIRMED),
            self._button(page, "buttons.cancel_delete", "", PAGE),
        )
        return replace(last, buttons=(*choices, row))

    def _entry_rows(self, page: _Page, entries: Sequence[tuple[int, ListEntry]]) -> list[ButtonRow]:
        actions = self._source.actions
        rows = [
            tuple(
                self._button(page, label, entry.code, action, number)
                for action, label in actions.items()
                if action not in entry.without
            )
            for number, entry in entries
        ]
        if any(len(row) > 1 for row in rows):
            return [row for row in rows if row]
        buttons = [button for row in rows for button in row]
        return [tuple(buttons[at : at + _PER_ROW]) for at in range(0, len(buttons), _PER_ROW)]

    def _text(self, page: _Page, key: str, /, **values: object) -> str:
        return self._sentences.text(page.sender.language, key, **values)

    def _button(self, page: _Page, label: str, code: str, action: str, number: int = 0) -> Button:
        text = self._text(page, label)
        return Button(f"{text} {number}" if number else text, self._data(page, action, code))

    def _data(self, page: _Page, action: str, code: str = "") -> str:
        return f"{self._source.verb}:{action}{code}.{page.number}.{page.topic_id}"
