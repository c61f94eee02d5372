"""`/memory`: what is remembered here, with buttons that change each memory.

Shows one conversation, and in a private chat the person's facts.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import ANYTHING, Answer, BotCommand, MemoryWords
from bot.commands.command_set import nearest
from bot.commands.correcting import MemoryDeletion, fact_id
from bot.commands.fact_edits import EDIT, FactEdits
from bot.commands.immediate import message_of, put_press
from bot.commands.paged_list import ASK, CONFIRMED, SWITCH, ListChange, ListContent, PagedList
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.memory_page.entries import MOVE, PIN, UNPIN, MemoryEntries, move_fact
from bot.reply.parts import Parts
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.behaviors.statements import MODES, set_mode
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.scopes.stats import count_conversation
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_FOUND, _MAX_WORD_BYTES = "=", 32
"""Begins the word of a search in callback data, and how much of a word fits there."""

_ON_ENTRIES: Mapping[str, str] = {ASK: "buttons.change_entry"}
_WORDS = ("off", "on", "quiet", *MODES)
_MARKS = {"hide marks": True, "show marks": False}


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory, access, sentences = services.memory, services.access, services.sentences
    settings = MemorySettings(memory, access, sentences, services.features)
    entries, deletion = MemoryEntries(services), MemoryDeletion(memory)
    shown = MemoryList(entries, deletion, services.edits, settings, access)
    buttons = {shown.verb: shown.press}
    command = BotCommand("memory", shown.answer, buttons=buttons, takes=ANYTHING, section="memory")
    return Feature(name="memory_page", commands=(command,))


@dataclass(slots=True, eq=False)
class MemoryList:
    """Shows, edits and deletes memories."""

    actions = _ON_ENTRIES

    entries: MemoryEntries
    deletion: MemoryDeletion
    edits: FactEdits
    settings: "MemorySettings"
    access: Access
    verb: str = "mem"

    @property
    def paged(self) -> PagedList:
        """Shows it a page at a time."""
        return PagedList(self, self.entries.sentences)

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Show the list; with an argument, change a setting or search for the word."""
        word = " ".join(asked.text.split())
        meanings = word.lower(), self.entries.sentences.meaning(word.lower())
        if meant := next((each for each in meanings if each in self.settings.words), ""):
            return await self.settings.answer(replace(asked, text=meant), conversation)
        if word:
            word = word.encode()[:_MAX_WORD_BYTES].decode(errors="ignore").strip()
            return await self._found(word).paged.show(asked, conversation)
        await self.entries.look(conversation, asked.update_id)
        return await self.paged.show(asked, conversation)

    def _found(self, word: str) -> "MemoryList":
        entries = MemoryEntries(self.entries.services, word)
        return replace(self, entries=entries, verb=f"{self.verb}:{_FOUND}{word}")

    async def press(self, pressed: ButtonPress, conversation: Scope, rest: str) -> Parts:
        """Act on a button of the list, or of what a search has found."""
        if rest.startswith(_FOUND):
            word, _, rest = rest.removeprefix(_FOUND).rpartition(":")
            return await self._found(word).press(pressed, conversation, rest)
        return await self.paged.press(pressed, conversation, rest)

    async def content(self, language: str, conversation: Scope, _: int) -> ListContent:
        """Return what is remembered; name a setting if a word finds nothing or lacks a letter."""
        found, word = await self.entries.content(language, conversation), self.entries.word
        near = nearest(word.lower(), self.settings.words)
        if word and (not found.entries or len(word) < len(near)):  # "of" is in many entries
            key = "arguments.did_you_mean" if near else "memory.not_found"
            values = {"command": "memory", "word": near, "said": word}
            return replace(found, above=[self.entries.sentences.text(language, key, **values)])
        return found

    async def check(self, pressed: ButtonPress, conversation: Scope, code: str) -> None:
        """Raise `NotConfirmed` for an unknown code or a person who may not change this memory."""
        is_setting = code in self.settings.codes
        senders = () if is_setting else await self.deletion.senders(conversation, code)
        await self.access.check(pressed, senders)

    async def act(self, pressed: ButtonPress, here: Scope, action: str, code: str) -> ListChange:
        """Delete a memory, pin it, move it, or ask below for other words; or change a setting."""
        if action == SWITCH and code in self.settings.codes:
            memory = self.settings.memory
            if code == "on" and (await count_conversation(memory.store, here)).waiting:
                # What waits was sent while memory was off, so it is answered first.
                asked = replace(message_of(pressed), command="memory", text=code)
                await put_press(memory.mailbox, here, asked)
                return ListChange()
            return ListChange(await self.settings.change(here, code, pressed.update_id))
        if action == EDIT:
            await self.edits.ask(pressed, here, fact_id(code))
            return ListChange()
        if action in (MOVE, PIN, UNPIN):
            await self.access.check_on_record(here)
            return await self._change_fact(here, action, fact_id(code))
        if action != CONFIRMED:
            raise NotConfirmed("unknown")
        return await self.deletion.delete(here, code)

    async def _change_fact(self, conversation: Scope, action: str, id_: int) -> ListChange:
        """Pin a fact, take the pin off, or move the fact between this topic and all."""
        correcting = self.entries.services.memory.correcting
        if action != MOVE:
            if not await correcting.pin_fact(conversation, id_, is_pinned=action == PIN):
                return ListChange("memory.edit_gone")
            return ListChange("memory.pinned" if action == PIN else "memory.unpinned")
        if not await move_fact(correcting, conversation, id_):
            return ListChange("memory.not_moved")
        return ListChange("memory.moved_everywhere" if id_ < 0 else "memory.moved_here")


@dataclass(frozen=True, slots=True, eq=False)
class MemorySettings:
    """Changes the settings; in a group only its administrators may."""

    memory: Memory
    access: Access
    sentences: Sentences
    features: Sequence[Feature]

    @property
    def words(self) -> tuple[str, ...]:
        """The words behind the command; they are not known before all features are made."""
        return (*_WORDS, *self._of_features)

    @property
    def codes(self) -> tuple[str, ...]:
        """What buttons below the list change: a button says what it does, and a word toggles."""
        return (*self.words, *_MARKS)

    @property
    def _of_features(self) -> dict[str, MemoryWords]:
        switches = (switch for each in self.features for switch in each.switches)
        return {word: switch for switch in switches for word in switch.words}

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Change the setting that the argument names, and say what it is now."""
        language, argument = asked.sender.language, asked.text
        if refusal := await self.access.refusal(asked, "memory"):
            return refusal
        keys = [await self.change(conversation, argument, asked.update_id)]
        if argument in MODES:  # how it learns says nothing while it does not
            stats = await count_conversation(self.memory.store, conversation)
            keys += ["memory.is_off"] * stats.is_off
        return Answer(self.sentences.say(language, *keys))

    async def change(self, conversation: Scope, to: str, update_id: int) -> str:
        """Change one of the settings `codes`; return the key of what to say about it."""
        key = f"memory.mode_{to}"
        match to:
            case "off" | "on":
                switch = self.memory.switch.turn_off if to == "off" else self.memory.switch.turn_on
                await switch(conversation)
                key = "memory.is_off" if to == "off" else "memory.turned_on"
            case "quiet" | "hide marks" | "show marks":
                is_quiet = await self._set_quiet(conversation, to, update_id)
                key = "memory.marks_off" if is_quiet else "memory.marks_on"
            case "auto" | "ask" | "explicit":
                await set_mode(self.memory.scopes, conversation, to)
            case _:
                key = await self._of_features[to].change(conversation, to)
        log.info("memory switched", to=to)
        return key

    async def _set_quiet(self, conversation: Scope, to: str, update_id: int) -> bool:
        """Hide or show the marks, or toggle once for an update; return whether they are hidden."""
        store, meta = self.memory.store, self.memory.keys.scope(conversation).meta
        [stored] = await store.read_meta(conversation, "quiet")
        by, _, was_quiet = (stored or b"").decode().partition("|")
        if to not in _MARKS and by == str(update_id):
            return bool(was_quiet)
        is_quiet = _MARKS.get(to, not was_quiet)
        quiet = f"{update_id}|{1 if is_quiet else ''}"
        await store.client.pipeline([("HSET", meta, "quiet", quiet), ("EXPIRE", meta, store.ttl_s)])
        return is_quiet
