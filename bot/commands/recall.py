"""`/recall`: replies to old messages of this conversation, so that a tap jumps to each of them."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.reply.parts import Part, Quote
from bot.reply.render import rendered
from bot.reply.utf16 import utf16_length
from bot.telegram.edits import texts_of
from bot.telegram.updates import IncomingMessage
from memory.message import Message
from memory.queue.off_record import OffRecordSessions
from memory.scopes.history import ChatHistory, HistoryParts
from memory.search.excerpt import LEFT_OUT, relevant_excerpt
from memory.search.words import words_of
from memory.store.keys import Scope

_MAX_FOUND = 5
_PASSAGE_CHARS = 300
_NEEDED_IN_QUOTES = frozenset(
    ("bold", "italic", "underline", "strikethrough", "spoiler", "date_time")
)
"""Telegram refuses a quote without these entities, and `Quote` has none."""


class RecallCommand:
    """Searches one conversation as a turn does; no model is asked."""

    def __init__(
        self, histories: HistoryParts, sessions: OffRecordSessions, sentences: Sentences
    ) -> None:
        self._histories = histories
        self._sessions = sessions
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer with a reply to each message that was found, oldest first."""
        language, query = asked.sender.language, asked.text.strip()
        if not query:
            return Answer(self._sentences.say(language, "recall.usage"))
        if await self._sessions.is_open(conversation):
            return Answer(self._sentences.say(language, "recall.off_record"))
        history = await ChatHistory.read(self._histories, conversation)
        best: dict[int, Message] = {}  # of each exchange
        for found in await history.search(query, 2 * _MAX_FOUND):
            best.setdefault(found.hit.exchange, found.hit)
        hits = list(best.values())[:_MAX_FOUND]
        if not hits:
            return Answer(self._sentences.say(language, "recall.nothing"))
        if history.conversation.chat_id != asked.chat_id:
            # The group has become a supergroup, where these ids are other messages.
            hits = [replace(message, message_ids=()) for message in hits]
        by_time = sorted(hits, key=lambda message: message.seq)
        shown = (self._shown(asked, message, query) for message in by_time)
        return Answer(tuple(await asyncio.gather(*shown)))

    async def _shown(self, asked: IncomingMessage, message: Message, query: str) -> Part:
        """Return a part that replies to a message and quotes what the query is about."""
        language = asked.sender.language
        message_id, part = _best(query, await _as_sent(message))
        passage = relevant_excerpt(part.text, query, _PASSAGE_CHARS)
        passage = passage.removeprefix(f"{LEFT_OUT} ").removesuffix(f" {LEFT_OUT}")
        [title] = self._sentences.say(
            language,
            f"recall.{_author(message, asked)}",
            name=message.sender_name,
            date=self._sentences.day(language, message.sent_at),
        )
        if not message_id or _has_format(part, passage):
            quote = Quote(message_id) if message_id else None
            return replace(title, text=f"{title.text}\n“{passage}”", quote=quote)
        return replace(title, quote=Quote(message_id, passage))


def _author(message: Message, asked: IncomingMessage) -> str:
    if message.role == "assistant":
        return "by_me"
    return "by_you" if message.sender_id == asked.sender.id else "by_other"


async def _as_sent(message: Message) -> list[tuple[int, Part]]:
    """Return the Telegram messages of a stored message: the id, 0 if unknown, and the text."""
    ids = message.message_ids or (0,)
    if message.role == "assistant":
        parts = await rendered(message.text)
        return [(ids[min(at, len(ids) - 1)], part) for at, part in enumerate(parts)]
    texts = texts_of(message) or [message.text]
    return [(id_, Part(text)) for id_, text in zip(ids, texts, strict=False) if text]


def _best(query: str, sent: Sequence[tuple[int, Part]]) -> tuple[int, Part]:
    """Return the Telegram message that has most words of the query, the first of several."""
    asked = {*words_of(query)}
    return max(sent, key=lambda each: len(asked & {*words_of(each[1].text)}))


def _has_format(part: Part, passage: str) -> bool:
    """Return whether the passage has a format that a quote would need, too."""
    start = utf16_length(part.text[: part.text.find(passage)])
    end = start + utf16_length(passage)
    return any(
        each.type in _NEEDED_IN_QUOTES and each.offset < end and start < each.end
        for each in part.entities
    )
