"""`/recall`: finds old messages of this conversation, with a way to jump to each of them.

If it finds one message, it replies to that one. Several are one silent message: in a supergroup
each has a link, and elsewhere a button. Its press waits in the mailbox like a message and is
answered by that reply.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace

from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.immediate import message_of, put_press
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.reply.parts import Button, Entity, Part, Parts, Quote, utf16_length, with_passage
from bot.reply.render import rendered
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.questions import NotConfirmed
from memory.memory import Memory
from memory.message import Message, texts_of
from memory.scopes.history import ChatHistory
from memory.search.embeddings import QuestionVectors
from memory.search.excerpt import LEFT_OUT, Asked, relevant_excerpt
from memory.search.message_search import SearchResult
from memory.search.question import as_question, asks
from memory.search.words import content_forms, words_of
from memory.store.keys import Scope

_JUMP = "jump"  # the command that the buttons stand for
_MESSAGE_ID = re.compile(r"\d{1,12}")
_MAX_FOUND = 5
_MIN_SHARE = 0.5  # of the best score, for a message with none of the words that are looked for
_SUPERGROUPS = -(10**12)  # their ids are below this; a link to a message has the rest of the id
_PASSAGE_CHARS = 300
_NEEDED_IN_QUOTES = {"bold", "italic", "underline", "strikethrough", "spoiler", "date_time"}
"""Telegram refuses a quote without these entities, and `Quote` has none."""

_VERB = "recall"


def feature(services: Services) -> Feature:
    """Return the feature."""
    recall = RecallCommand(services.memory, services.budget.allows, services.sentences)
    return Feature(name="recall", commands=recall.commands, shows_message=_VERB)


class RecallCommand:
    """Searches one conversation as a turn does; the only model is that of the embeddings."""

    def __init__(
        self, memory: Memory, allows: Callable[..., Awaitable[bool]], sentences: Sentences
    ) -> None:
        self._histories = memory.histories
        self._mailbox = memory.mailbox
        self._allows = allows  # whether models may be asked now; else it searches by words alone
        self._sentences = sentences
        self.commands = (
            BotCommand(
                "recall",
                self.answer,
                buttons={_VERB: self.press},
                takes=ANYTHING,
                section="memory",
                uses_memory=True,
            ),
            BotCommand(_JUMP, self.jump, "unlisted", takes=_MESSAGE_ID, uses_memory=True),
        )

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer with the messages that were found, best first."""
        language, query = asked.sender.language, asked.text.strip()
        if not query:
            return Answer(self._sentences.say(language, "recall.usage"))
        histories = self._histories
        if not await self._allows(as_turn=True):
            histories = replace(histories, question_vectors=QuestionVectors(None))
        history = await ChatHistory.read(histories, conversation)
        found = await history.search(as_question(query), 2 * _MAX_FOUND)
        # A question that was answered from memory only repeats what is looked for.
        exchanges = {each.hit.exchange for each in found}
        messages = [each for each in history.messages if each.exchange in exchanges]
        questions = {each.exchange for each in messages if each.role == "user" and asks(each.text)}
        repeated = {each.exchange for each in messages if each.rests_on_memory} & questions
        best: dict[int, Message] = {}  # of each exchange
        for each in _about(query, [each for each in found if each.hit.exchange not in repeated]):
            best.setdefault(each.exchange, each)
        hits = list(best.values())[:_MAX_FOUND]
        if not hits:
            return Answer(self._sentences.say(language, "recall.nothing"))
        here = history.conversation
        shown = await asyncio.gather(*(self._shown(asked, here, each, query) for each in hits))
        return Answer((_together(asked.chat_id, shown, hits) if len(shown) > 1 else shown[0],))

    async def press(self, pressed: ButtonPress, here: Scope, seq: str) -> Parts:
        """Queue the command that replies to the message of a button."""
        if not seq.isdecimal():
            raise NotConfirmed("unknown")
        await put_press(self._mailbox, here, replace(message_of(pressed), command=_JUMP, text=seq))
        return ()

    async def jump(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Reply to the message with a sequence."""
        history = await ChatHistory.read(self._histories, conversation)
        seq = int(asked.text or 0)
        named = next((each for each in history.messages if each.seq == seq), None)
        if named is None or seq in history.hidden:
            key = "recall.nothing" if named is None else "recall.hidden"
            return Answer(self._sentences.say(asked.sender.language, key))
        return Answer((await self._shown(asked, history.conversation, named, ""),))

    async def _shown(
        self, asked: IncomingMessage, here: Scope, message: Message, query: str
    ) -> Part:
        language = asked.sender.language
        if here.chat_id != asked.chat_id:
            # The group has become a supergroup, where these ids are other messages.
            message = replace(message, message_ids=())
        author = "by_you" if message.sender_id == asked.sender.id else "by_other"
        author = "by_me" if message.role == "assistant" else author
        # `sent` has the Telegram messages of the stored one: the id, 0 if unknown, and the text.
        ids = message.ids_in_chat or (0,)
        if message.role == "assistant":
            parts = await rendered(message.text)
            sent = [(ids[min(at, len(ids) - 1)], part) for at, part in enumerate(parts)]
        else:
            texts = texts_of(message) or [message.text]
            sent = [(id_, Part(text)) for id_, text in zip(ids, texts, strict=False) if text]
        words = {*words_of(query)}
        message_id, part = max(sent, key=lambda each: len(words & {*words_of(each[1].text)}))
        passage = relevant_excerpt(part.text, Asked(query), _PASSAGE_CHARS)
        passage = passage.removeprefix(f"{LEFT_OUT} ").removesuffix(f" {LEFT_OUT}")
        date = self._sentences.day(language, message.sent_at)
        values = {"name": message.sender_name, "date": date}
        [title] = self._sentences.say(language, f"recall.{author}", **values)
        if not message_id or _has_format(part, passage):
            quote = Quote(message_id) if message_id else None
            return with_passage(replace(title, quote=quote), passage)
        return replace(title, quote=Quote(message_id, passage))


def _about(query: str, found: Sequence[SearchResult]) -> Iterator[Message]:
    """Yield what has a word of the query, or is nearly as good by itself as the best one.

    A search fills up what it finds with neighbors. They help a model, but no person.
    """
    words = content_forms(query)
    needed = _MIN_SHARE * max((each.score for each in found), default=0)
    for each in found:
        is_near = each.score >= needed and not each.is_boosted
        if is_near or not words.isdisjoint(content_forms(each.hit.text)):
            yield each.hit


def _together(chat_id: int, shown: Sequence[Part], hits: Sequence[Message]) -> Part:
    text, buttons = "", []
    entities: list[Entity] = []
    for number, (part, hit) in enumerate(zip(shown, hits, strict=True), start=1):
        title, _, _ = part.text.partition("\n")
        said = with_passage(part, part.quote.text) if part.quote and part.quote.text else part
        begins = utf16_length(f"{text}{number}. ")
        text += f"{number}. {said.text}\n\n"
        if part.quote and chat_id < _SUPERGROUPS:
            url = f"https://t.me/c/{_SUPERGROUPS - chat_id}/{part.quote.message_id}"
            entities.append(Entity("text_link", begins, utf16_length(title), url))
        elif part.quote:
            buttons.append(Button(f"↗ {number}", f"{_VERB}:{hit.seq}"))
        entities += (replace(each, offset=each.offset + begins) for each in said.entities)
    rows = (tuple(buttons),) if buttons else ()
    return Part(text.rstrip(), tuple(entities), rows, is_silent=True)


def _has_format(part: Part, passage: str) -> bool:
    start = utf16_length(part.text[: part.text.find(passage)])
    end = start + utf16_length(passage)
    return any(
        each.type in _NEEDED_IN_QUOTES and each.offset < end and start < each.end
        for each in part.entities
    )
