"""The inspector: the latest turns, what is stored, and how to erase it.

It observes turns and erases as an operator may. It never takes part in a turn. It shows what people
said, so only the playground may have it.
"""

import asyncio
import math
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property

from markupsafe import Markup, escape

from bot.model.call import PromptMessage
from bot.model.model_errors import reason_of
from bot.playground.offline_quotes import NUMBER, content_words, meanings
from bot.playground.page_telegram import PageTelegram
from bot.playground.scene import BOT, PageChat, PageMessage, PagePerson, Scene, find_entities
from bot.prompt.assemble import Prompt
from bot.reply.render import parsed
from bot.turn.observers import AgentRan, AgentRun, BotServing, Event, TurnLog
from memory.behaviors.context import AgentContext
from memory.behaviors.steps import CompletedStep
from memory.memory import Memory
from memory.message import Message
from memory.scopes.entries import Fact
from memory.scopes.history import ChatHistory
from memory.search.message_search import SearchResult
from memory.search.question import named_days
from memory.store.client import RedisClient
from memory.store.commands import Reply
from memory.store.keys import Keys, Scope

_MAX_RECEIPTS, _MAX_FACTS, _MAX_ENTITIES = 20, 60, 100  # Telegram formats as much of one message
_MAX_TURNS, _MAX_LISTED = 400, 20  # turns kept of all conversations, and listed of one
_MAX_RESTORED = 400  # remembered messages shown in a chat after a restart

_SENTENCE = re.compile(r"[^.!?…\n]+")
_WORD = re.compile(r"(\w+)")
_SECTION_END = "</memory>"
_QUOTED_CHARS = 12  # a shorter sentence may stand in an answer by chance


@dataclass(frozen=True)
class TurnTrace:
    """The words of one run; an `AgentContext` would keep erased words, files, the bot."""

    number: int  # counts in the conversation since the start
    asked: Message  # the message that was answered
    window: tuple[Message, ...]
    recalled: tuple[SearchResult, ...]
    steps: tuple[CompletedStep, ...]
    prompt: tuple[PromptMessage, ...]  # of its last model call
    reply: str
    failure: str  # the error as the log names it
    erasure: int  # the latest one that it saw

    @cached_property
    def section(self) -> str:
        """The memory section of the prompt; empty if there is none."""
        message = next(m for m in reversed(self.prompt) if m.role == "user")
        section, end, _ = message.content.partition(_SECTION_END)
        return section + end if end else ""

    @cached_property
    def found(self) -> "list[FoundMessage]":
        """What was found in older messages and why, best first.

        What resembles the best match comes later: its score is of another search and may be higher.
        """
        best = self.recalled[0].hit.text if self.recalled else ""
        return [FoundMessage(each, self.asked.text, self.reply, best) for each in self.recalled]


class FoundMessage:
    """A message that was found (`hit`) for a question, and why; `best` is the best match."""

    def __init__(self, result: SearchResult, question: str, answer: str, best: str = "") -> None:
        self.result, self.hit = result, result.hit
        wanted = dict(meanings(question))
        wanted.pop(NUMBER, "")  # a number does not answer every question for one
        equal = self._shared(lambda word: set(meanings(word)), set(wanted))
        alike = self._shared(lambda word: set(meanings(word).values()), set(wanted.values()))
        alike = tuple(word for word in alike if word not in equal)
        self._shared_words = {word.casefold() for word in equal + alike}
        like = self._shared(lambda word: set(content_words(word)), set(content_words(best)))
        self.reasons = tuple(_reasons(result, question, (equal, alike, like)))
        sentences = (each.strip() for each in _SENTENCE.findall(self.hit.text))
        self.is_quoted = any(len(each) >= _QUOTED_CHARS and each in answer for each in sentences)
        """Whether the answer repeats one of its sentences."""

    def marked(self, text: str) -> Markup:
        """Return a text as HTML with the words marked that are also in the question."""
        pieces = (
            Markup("<mark>{}</mark>").format(piece)
            if piece.casefold() in self._shared_words
            else escape(piece)
            for piece in _WORD.split(text)
        )
        return Markup("").join(pieces)

    def _shared(
        self, keys: Callable[[str], AbstractSet[str]], wanted: AbstractSet[str]
    ) -> tuple[str, ...]:
        words = dict.fromkeys(_WORD.findall(self.hit.text))
        return tuple(word for word in words if content_words(word) and wanted & keys(word))


def _reasons(
    result: SearchResult, question: str, shared: Sequence[tuple[str, ...]]
) -> Iterator[tuple[str, str]]:
    equal, alike, like = shared
    if equal:
        yield ("By words", f"it contains {_listed(equal)}, as your question does")
    elif alike and result.lexical > 0:
        yield ("By words", f"{_listed(alike)} means the same as a word of your question")
    day = datetime.fromtimestamp(result.hit.sent_at).astimezone().date()
    periods = (p for each in named_days(question) for p in each.periods(day.year, day.year))
    if any(first <= day.toordinal() <= last for first, last in periods):
        yield ("By its date", "your question names the time when it was said")
    elif result.is_boosted:
        yield ("By a neighbor", "a message right next to it matches your question")
    elif result.lexical > 0 and like and not equal and not alike:
        yield ("By the best match", f"it contains {_listed(like)}, as the best match does")
    elif result.lexical > 0 and not equal and not alike:
        yield ("By its session", "other messages of the same session match your question")
    if result.dense > 0:
        why = "its vector is close to the vector of your question"
        if alike:
            why = f"{_listed(alike)} means the same as a word of your question"
        elif result.lexical <= 0:
            why = "its vector is close to that of your question or of the best match"
        yield ("By meaning", why)


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join(f"“{word}”" for word in words[:3])


_NEWEST = 20  # the most entries shown of a stream or a sorted set

_VALUE_CHARS = 600


@dataclass(frozen=True, slots=True)
class KeyDump:
    """One key with its newest entries, oldest first."""

    kind: str  # the last part of its name
    type: str
    nbytes: int  # according to Redis
    count: int
    expires_s: int  # -1 if it does not expire
    entries: tuple[tuple[str, str], ...]  # a name (field, id or score) and a value, shortened


def _summary(error: BaseException) -> str:
    """Return what a log says of an error, as one line."""
    fields = {name: str(value) for name, value in reason_of(error).items()}
    setting = fields.pop("look_at", "")
    return " ".join(fields.values()) + (f"; look at {setting}" if setting else "")


class Inspector:
    """Keeps the latest turns and reads the store."""

    def __init__(self, telegram: PageTelegram, scene: Scene) -> None:
        self.telegram = telegram
        self.scene = scene
        self.memory: Memory | None = None
        self.serving = asyncio.Event()
        self._prompt: Callable[[AgentContext], Prompt] | None = None
        self._restored = False
        self._began_at = time.time()
        self._log = TurnLog(lambda scope: scope.tag, self._words_of, _MAX_TURNS)

    def observe(self, event: Event) -> None:
        """Note the memory of the bot once it serves, and log its turns."""
        if isinstance(event, BotServing):
            self.memory, self._prompt = event.memory, event.prompt
            self.serving.set()
        self._log.observe(event)

    def _words_of(self, ran: AgentRan) -> TurnTrace | None:
        """Return the words of a run; None if it was off the record."""
        context = ran.context
        if not context.uses_memory or self._prompt is None:
            return None
        latest = next(self._turns_of(context.conversation), None)
        prompt = self._prompt(context).messages
        return TurnTrace(
            number=latest[1].number + 1 if latest else 1,
            asked=context.user_message,
            window=context.background.window,
            recalled=context.background.recalled,
            steps=tuple(context.completed_steps),
            prompt=tuple(replace(each, pictures=()) for each in prompt),
            reply=ran.reply,
            failure=_summary(ran.error) if ran.error else "",
            erasure=int(context.chat_history.version[1]),
        )

    async def turns(self, place: PageChat) -> list[tuple[AgentRun, TurnTrace]]:
        """Return the turns of a place since its last erasure, newest first; raise `StoreError`."""
        here = place.conversation
        if self.memory is not None:
            _, erasure = (await ChatHistory.read(self.memory.histories, here)).version
            self._drop(here, int(erasure))
        return list(self._turns_of(here))[:_MAX_LISTED]

    def _turns_of(self, here: Scope) -> Iterator[tuple[AgentRun, TurnTrace]]:
        """Yield the turns of a conversation, newest first."""
        for run, words in reversed(self._log.runs):
            if words and run.conversation == here.tag:
                yield run, words

    def _drop(self, here: Scope, erasure: float) -> None:
        """Drop the turns from before an erasure: their prompts have erased words."""
        for run, words in list(self._turns_of(here)):
            if words.erasure < erasure:
                self._log.runs.remove((run, words))

    async def restore(self) -> None:
        """Show in the chats, once, what the bot remembers from before; raise `StoreError`."""
        if self.memory is None or self._restored:
            return
        self._restored = True
        for place in self.scene:
            await self.show_stored(self.memory, place)

    async def show_stored(self, memory: Memory, place: PageChat) -> None:
        """Show the stored messages of a place in its chat; raise `StoreError`."""
        history = await ChatHistory.read(memory.histories, place.conversation)
        stored = history.messages[-_MAX_RESTORED:]
        for message in (each for each in stored if each.sent_at < self._began_at):
            if message.role == "user":
                person = self.scene.person(str(message.sender_id))
                sender = person or PagePerson(message.sender_id, message.sender_name)
                text, entities = message.text, find_entities(message.text)
            else:  # in a thread, because a chat may have hundreds of long answers
                sender, (text, entities) = BOT, await asyncio.to_thread(parsed, message.text)
                text, entities = text or message.text, entities[:_MAX_ENTITIES]
            number = telegram_id_of(message)
            place.remembered_id = max(place.remembered_id, number)
            place.put(PageMessage(number, sender, text, int(message.sent_at), entities))

    async def kept(self, place: PageChat) -> dict[str, object] | None:
        """Return what is remembered, newest first, and the next reminders; raise `StoreError`."""
        if self.memory is None:
            return None
        here = place.conversation
        history = await ChatHistory.read(self.memory.histories, here)
        facts = (await self.memory.scopes.read(here.facts_scope)).facts
        rest_on: dict[int, list[Fact]] = defaultdict(list)
        for fact in facts:
            for source in fact.sources:
                if source.tag == here.tag:
                    rest_on[source.seq].append(fact)
        messages = {message.seq: message for message in history.messages}
        taught = [seq for seq in sorted(rest_on, reverse=True) if seq in messages]
        return {
            "receipts": [(messages[seq], rest_on[seq]) for seq in taught[:_MAX_RECEIPTS]],
            "facts": facts[: -_MAX_FACTS - 1 : -1],
            "reminders": await self.memory.work.list_open(here),
            "messages": messages,
            "texts": {fact.id: fact.text for fact in facts},
        }

    async def stored(self, place: PageChat) -> list[tuple[str, list[KeyDump]]]:
        """Return what Redis holds, by scope; raise `StoreError`."""
        if self.memory is None:
            return []
        scopes = [("This conversation", place.conversation)]
        if not place.is_group:
            person = Scope.of_person(place.speaker.id)
            scopes.append((f"{place.title} in all private chats", person))
        client, keys = self.memory.client, self.memory.keys
        return [(title, await dump_keys(client, keys, scope)) for title, scope in scopes]

    async def start_over(self) -> None:
        """Erase all conversations and all that was learned; raise `StoreError`."""
        self.telegram.updates.clear()
        self.telegram.files.clear()
        if self.memory is not None:
            shards = [("ZRANGE", index, 0, -1) for index in self.memory.keys.conversations]
            found = await self.memory.client.pipeline(shards)
            people = [place.chat_id for place in self.scene if not place.is_group]
            await self._erase([Scope(tag.decode()) for tags in found for tag in tags], people)
        for place in self.scene:
            self._empty(place)
        self.scene.remove_guest()

    async def remove_guest(self) -> None:
        """Erase the made-up year and take its person off the page; raise `StoreError`."""
        guest = self.scene.guest
        if guest is not None:
            await self._erase([guest.conversation], [guest.chat_id])
            self._empty(guest)
            self.scene.remove_guest()

    async def _erase(self, conversations: list[Scope], people: list[int]) -> None:
        if self.memory is None:
            return
        for scope in (*conversations, *map(Scope.of_person, people)):
            await (await ChatHistory.read(self.memory.histories, scope)).clear()
        unlinks = [("UNLINK", self.memory.keys.person(person)) for person in people]
        await self.memory.client.pipeline(unlinks)

    def _empty(self, place: PageChat) -> None:
        place.empty()
        self._drop(place.conversation, math.inf)
        self.telegram.note_change()


def telegram_id_of(message: Message) -> int:
    """Return the id of a stored message in its chat; a made-up one has only its sequence."""
    return max(message.message_ids, default=message.seq)


async def dump_keys(client: RedisClient, keys: Keys, scope: Scope) -> list[KeyDump]:
    """Return what is stored under one scope, in the order of its keys; absent keys are left out."""
    dumps = []
    for name in keys.scope(scope):
        kind = (await client.call("TYPE", name)).decode()
        if kind not in _READ:
            continue
        count, newest, *arguments = _READ[kind]
        nbytes, expires_s, entries, content = await client.pipeline(
            [("MEMORY USAGE", name), ("TTL", name), (count, name), (newest, name, *arguments)]
        )
        if content:
            about = name.rpartition(":")[2], kind, int(nbytes or 0), int(entries), int(expires_s)
            dumps.append(KeyDump(*about, tuple(_entries(kind, content))))
    return dumps


def _entries(kind: str, content: Reply) -> Iterator[tuple[str, str]]:
    match kind:
        case "stream":
            for entry_id, fields in reversed(content):
                pairs = (f"{_shown(name)}: {_shown(value)}" for name, value in fields.items())
                yield _shown(entry_id), " · ".join(pairs)
        case "hash":
            yield from ((_shown(name), _shown(value)) for name, value in sorted(content.items()))
        case "zset":
            yield from ((f"{score:.0f}", _shown(member)) for member, score in content)
        case _:
            yield "", _shown(content)


def _shown(value: bytes) -> str:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return f"{len(value)} bytes"
    if not text.isprintable() and "\n" not in text:
        return f"{len(value)} bytes"
    text = text.rstrip(" ")
    return text if len(text) <= _VALUE_CHARS else f"{text[:_VALUE_CHARS]} …"


_READ: Mapping[str, tuple[str | int, ...]] = {
    "stream": ("XLEN", "XREVRANGE", "+", "-", "COUNT", _NEWEST),
    "hash": ("HLEN", "HGETALL"),
    "zset": ("ZCARD", "ZRANGE", -_NEWEST, -1, "WITHSCORES"),
    "string": ("EXISTS", "GET"),
}
"""The types of this project's keys: the command that counts, and the one that reads the newest."""
