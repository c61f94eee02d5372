"""What topics add to the bot, beyond that each has a memory of its own.

A topic is named after the synopsis of its first session, once. A name that a person gave is never
changed, and an error changes nothing.

What was said in the other topics of a chat is searched if its people want that. In a private chat a
person can let every topic search all the others; this is stored in the person's scope. In a group
an administrator lets a topic take part, and the topics that take part search each other; this is
stored in each topic, and the scope of the General topic lists them. While it is off, no other topic
is read.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

import structlog

from bot.commands.bot_command import MemoryWords
from bot.feature import Feature, Services
from bot.telegram.chat import Chat
from bot.telegram.errors import FloodWait, OutcomeUnknown, TelegramError, Unreachable
from bot.telegram.updates import TopicNamed, clean_name
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import CallContext
from memory.memory import Memory
from memory.message import Message
from memory.scopes.entries import Synopsis
from memory.scopes.fields import Field
from memory.scopes.history import ChatHistory, Histories
from memory.scopes.log import Delta
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Trust, never_erased
from memory.search.excerpt import Asked, relevant_excerpt
from memory.search.message_search import EVERYTHING, SearchFilter, SearchResult
from memory.search.question import is_question
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from memory.text.message_lines import dated, memory_line
from memory.text.untrusted_text import cut, escaped

log = structlog.get_logger(__name__)

_ON, _OFF = "topics", "topics off"


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory = services.memory

    async def change(conversation: Scope, word: str) -> str:
        await set_recall_topics(memory.scopes, conversation, is_on=word == _ON)
        return _said(conversation, is_on=word == _ON)

    async def exported(_: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        name = "private_topics_recall_each_other" if facts.scope.is_person else "recalls_topics"
        return {name: recalls_topics(facts)}

    titles = TopicTitles(memory, services.chat)
    return Feature(
        name="topics",
        switches=[MemoryWords((_ON, _OFF), change, _shown)],
        arrivals={TopicNamed: titles.arrived},
        behaviors=[OtherTopics(memory.histories)],
        learned=[titles.give],
        exports=[exported],
    )


def _shown(conversation: Scope, facts: ScopeMemory) -> str:
    is_on = recalls_topics(facts)
    return _said(conversation, is_on=is_on) if is_on or conversation.topic_id else ""


def _said(conversation: Scope, *, is_on: bool) -> str:
    in_group = "group_" if conversation.topic_id else "main_"  # a group may have no topics
    where = "" if conversation.is_private else in_group
    return f"topics.{where}{'on' if is_on else 'off'}"


HEADING = "Said in other topics of this chat:"

_MAX_TOPICS = 10  # at most this many topics are searched: those in which somebody wrote last

_MAX_FILLED = 3_000  # a topic with more messages is searched as far as this process has loaded it

_PAGE = 200
_MAX_FOUND = 4
_MAX_TOKENS = 300
_LINE_TOKENS = 60


@dataclass(frozen=True, slots=True)
class RecallTopics(Field):
    """Whether a person's private topics recall each other, or a group's topic recalls others."""

    PREFIX = "recall_topics"
    is_on: bool

    without = never_erased


@dataclass(frozen=True, slots=True)
class SharedTopic(Field):
    """A topic of this group that takes part; a field of the General topic."""

    PREFIX = "shared_topic"
    KEY = "topic_id"
    topic_id: int

    without = never_erased


def recalls_topics(facts: ScopeMemory) -> bool:
    """Return whether the topics of this person, or this topic of a group, recall the others."""
    found = facts.get(RecallTopics)
    return found is not None and found.is_on


async def set_recall_topics(scopes: Scopes, conversation: Scope, *, is_on: bool) -> None:
    """Let the topics of a private chat, or this one of a group, recall the others, or not.

    A repeat changes nothing. Raise `StoreError`.
    """
    if is_on and not conversation.is_private:
        # A topic that is listed and does not take part is not searched.
        general = Scope.of_chat(conversation.chat_id)
        await scopes.set_field(general, SharedTopic(conversation.topic_id))
    await scopes.set_field(conversation.facts_scope, RecallTopics(is_on))


class OtherTopics(AIContextBehavior):
    """Searches the messages of a chat's other topics."""

    name = "other_topics"
    search_heading = HEADING

    def __init__(self, histories: Histories) -> None:
        self._histories = histories
        self._scopes = histories.scopes

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return a heading and lines about the new messages, with answers to questions, or ""."""
        question = call_context.question(new_messages)
        lines = await self.on_search(call_context, question, _MAX_FOUND, _MAX_TOKENS)
        call_context.used.update(lines)
        return "\n".join((HEADING, *lines.values())) if lines else ""

    async def on_search(
        self,
        call_context: CallContext,
        question: str,
        k: int,
        max_tokens: int,
        search_filter: SearchFilter = EVERYTHING,
    ) -> dict[str, str]:
        """Return lines by their codes (`CallContext.used`), together at most `max_tokens`.

        The best hit comes first. The lines show at most `k` messages and the answers to those that
        are questions. Raise `StoreError`.
        """
        here = call_context.conversation
        if not question.strip():
            return {}
        if not recalls_topics(await self._scopes.current(here.facts_scope)):
            return {}
        topics = await self._read_topics(here)
        searches = (self._search(topic, question, k, search_filter) for topic in topics)
        hits = chain.from_iterable(await asyncio.gather(*searches))
        found = sorted(hits, key=lambda hit: -hit[0])
        tokens, lines, asked = self._histories.tokens, dict[str, str](), Asked(question)
        for _, topic, said in found[:k]:
            for message in said:
                text = escaped(message.text)
                excerpt = relevant_excerpt(text, asked, _LINE_TOKENS, tokens.count)
                zone = call_context.zone
                when = f"{dated(message.sent_at, call_context.now, zone)}, {_name(topic)}"
                line = f"[{when}] {memory_line(message, excerpt, zone)}"
                code = f"t{message.seq}@{topic.scope.topic_id}"
                if code not in lines and (cost := tokens.count(f"{line}\n")) <= max_tokens:
                    max_tokens -= cost
                    lines[code] = line
        return lines

    async def _read_topics(self, here: Scope) -> list[ScopeMemory]:
        """Return the other topics as they are stored now, with at least their newest messages.

        This takes two round trips, three in a group with many topics, and more for topics of which
        this process has not loaded all records.
        """
        others = await (self._private(here) if here.is_private else self._shared(here))
        store, cursor = self._scopes.store, self._scopes.cursor
        read, keys = store.scripts["read_scope"], store.keys
        reading = [
            read.command(keys.scope(each), {"cursor": cursor(each).request, "max": _PAGE})
            for each in others
        ]
        answers = await store.client.pipeline(reading)
        topics = []
        for scope, answer in zip(others, answers, strict=True):
            topic = self._scopes.join(scope, Delta.of(answer), _PAGE)
            # Only all records say which messages must not be recalled.
            topics.append(topic if topic.is_whole else await self._scopes.read(scope))
        searched = (each for each in topics if here.is_private or recalls_topics(each))
        return [each for each in searched if not each.is_off]

    async def _private(self, here: Scope) -> list[Scope]:
        """Return the other topics of a private chat, those first in which was written last."""
        store = self._scopes.store
        listed = await store.client.call("HGETALL", store.keys.person(here.chat_id))
        at: dict[Scope, int] = {}
        for tag, value in listed.items():
            scope, ms = Scope(tag.decode()), value.rpartition(b"|")[2]  # `<update id>|<Unix ms>`
            if scope.is_private and scope.chat_id == here.chat_id and scope != here:
                at[scope] = int(ms) if ms.isdigit() else 0
        return sorted(at, key=lambda scope: -at[scope])[:_MAX_TOPICS]

    async def _shared(self, here: Scope) -> list[Scope]:
        """Return the other topics of a group that are listed, of many those written in last."""
        general = Scope.of_chat(here.chat_id)
        listed = (await self._scopes.read(general)).all(SharedTopic)
        if here.topic_id not in (each.topic_id for each in listed):
            # A clear or the expiry of General took the list.
            await self._scopes.set_field(general, SharedTopic(here.topic_id))
        others = [Scope.of_chat(here.chat_id, each.topic_id) for each in listed]
        others, store = [each for each in others if each != here], self._scopes.store
        if len(others) > _MAX_TOPICS:
            wanted = [("ZSCORE", store.keys.index_of(each), each.tag) for each in others]
            written = zip(await store.client.pipeline(wanted), others, strict=True)
            newest_first = sorted(written, key=lambda each: -float(each[0] or 0))
            others = [topic for _, topic in newest_first[:_MAX_TOPICS]]
        return others

    async def _search(
        self, topic: ScopeMemory, question: str, k: int, search_filter: SearchFilter
    ) -> list[tuple[float, ScopeMemory, list[Message]]]:
        history = ChatHistory(self._histories, topic, topic.messages)
        if topic.messages.length <= _MAX_FILLED:
            try:
                await history.fill()
            except LeaseLost:  # something was erased since
                return []
        found = await history.search_in_memory(question, k, (), search_filter, is_alone=True)
        return [(each.score, topic, _with_answer(each, topic)) for each in found]


def _with_answer(found: SearchResult, topic: ScopeMemory) -> list[Message]:
    hit, at = found.hit, found.messages.index(found.hit)
    if not is_question(hit.text):
        return [hit]
    following = found.messages[at + 1 : at + 2]
    shown = (each for each in following if each.seq not in topic.hidden and not each.is_refused)
    return [hit, *shown]


def _name(topic: ScopeMemory) -> str:
    """Return a label: "main chat", what the topic is about, or "another topic"."""
    if not topic.scope.topic_id:
        return "main chat"
    title = title_of(topic.synopses[0]) if topic.synopses else ""
    return f'topic "{escaped(title)}"' if title else "another topic"


_MAX_BYTES = 96  # Telegram takes 128 characters and shows some thirty in the list of topics

_NAMES_KEPT_S = 7 * 86_400  # how long we know who named a topic; then the bot leaves its name alone


class TopicTitles:
    """Gives topics their titles, in the process that learns from them."""

    def __init__(self, memory: Memory, chat: Chat) -> None:
        self._memory = memory
        self._chat = chat

    async def arrived(self, named: TopicNamed) -> None:
        """Note at intake who named a topic last; raise `StoreError`.

        A name that Telegram gave is noted only if nothing is noted yet.
        """
        topic = Scope.of_chat(named.chat_id, named.topic_id)
        if named.is_by_person:
            await self._note(topic, "person")
        else:
            await self._note(topic, "telegram", "NX")

    async def give(self, conversation: Scope) -> bool:
        """Name a conversation's topic if it needs a name and has a synopsis; raise `StoreError`.

        Return false if Telegram cannot be asked now. If the process dies in between, the next one
        gives the same name again.
        """
        is_topic = conversation.is_private and conversation.topic_id
        if not is_topic or not await self._needs_name(conversation):
            return True
        synopses = (await self._memory.scopes.read(conversation)).synopses
        title = title_of(synopses[0]) if synopses else ""
        if not title or not await self._needs_name(conversation):
            return True
        try:
            await self._chat.name_topic(conversation.chat_id, conversation.topic_id, title)
        except (FloodWait, OutcomeUnknown, Unreachable):
            return False
        except TelegramError as error:
            log.info("topic not named", reason=type(error).__name__)
        if await self._needs_name(conversation):  # no person gave a name meanwhile
            await self._note(conversation, "bot")
        return True

    async def _needs_name(self, topic: Scope) -> bool:
        key = self._memory.keys.topic_name(topic)
        return bool(await self._memory.client.call("GET", key) == b"telegram")

    async def _note(self, topic: Scope, named_by: str, *condition: str) -> None:
        key = self._memory.keys.topic_name(topic)
        await self._memory.client.call("SET", key, named_by, "EX", _NAMES_KEPT_S, *condition)


def title_of(synopsis: Synopsis) -> str:
    """Return a few words on what a session was about; "" if it rests on untrusted text."""
    if synopsis.trust == Trust.UNTRUSTED:
        return ""
    said = synopsis.likely_request or synopsis.result or synopsis.actions or synopsis.preferences
    return cut(clean_name(said, max_chars=2 * _MAX_BYTES), _MAX_BYTES).rstrip(".,;:!")
