"""Loads what a run of the agent works with: window, replied messages, recall, memory context.

What Telegram gave with a reply is used for this turn only and never stored. So a reply to a message
that was erased does not bring it back.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace

import structlog

from bot.agent.agent import RunAgent
from bot.commands.access import asker_of
from bot.prompt.assemble import Prompt, in_thread_if_long
from bot.telegram.chat import Chat
from bot.telegram.errors import TelegramError
from bot.telegram.updates import FILE_MARK, PHOTO_MARK, ReplyTarget
from bot.turn.request import Request
from memory.behaviors.behavior import AIContextBehaviorManager
from memory.behaviors.context import AgentContext, Background, CallContext
from memory.behaviors.steps import Action, CompletedStep
from memory.message import Message, RepliedTo
from memory.scopes.history import ChatHistory
from memory.scopes.selectors import MessageSelector
from memory.scopes.writes import ToolWrite
from memory.search.message_search import SearchResult
from memory.search.question import asks, without_small_talk
from memory.search.words import asked_terms, words_of
from memory.store.keys import Scope
from memory.store.tasks import end_tasks
from memory.text.message_lines import Speakers

log = structlog.get_logger(__name__)

_MIN_CONTENT_WORDS = 2
_MAX_WORDS = 12  # a question of fewer content words and at most so many words is a follow-up


@dataclass(frozen=True, slots=True)
class Assistant:
    """What answers messages. The system message and the tools include those of the `behaviors`."""

    run: RunAgent  # answers the message of a context
    run_tools: Callable[[Action, AgentContext], Awaitable[CompletedStep]]  # of one action
    prompt: Callable[[AgentContext], Prompt]
    showable: Callable[[AgentContext], tuple[SearchResult, ...]]  # what a prompt may show
    selector: MessageSelector  # chooses the messages of the window
    behaviors: AIContextBehaviorManager
    within: Callable[[Scope], "Assistant"]  # with only the behaviors that run in a conversation


@dataclass(frozen=True, slots=True, eq=False)
class ContextLoader:
    """Loads contexts; `recall_k` is how many earlier messages a turn finds at most.

    The context keeps only results that are `showable`: the prompt has room for them. The model
    does not see the others, so they must not mark its answer as untrusted.
    """

    assistant: Assistant
    chat: Chat
    recall_k: int

    async def load(self, request: Request, history: ChatHistory) -> AgentContext:
        """Search earlier messages while the behaviors prepare; raise `LeaseLost`, `StoreError`."""
        message, last = request.message, request.last
        is_new = last.begins_session
        window = () if is_new else history.select_messages(self.assistant.selector)

        async def is_admin() -> bool:
            try:
                return await asker_of(last, self.chat).is_admin()
            except TelegramError as error:  # a tool asks; without an answer nobody is one
                log.warning("admins unknown", reason=type(error).__name__)
                return False

        targets = (each.reply for each in request.updates if each.reply and not each.reply.is_ours)
        first_lines = (each.text.partition("\n")[0] for each in targets)
        files = [each for each in first_lines if each.startswith(FILE_MARK)]
        if files and not (asks(message.text) or without_small_talk(words_of(message.text))):
            files = []  # "thanks"
        query = "\n".join((*files, message.text if is_new else _query(message, history)))
        writes: list[ToolWrite] = []
        conversation, speaker, now = history.conversation, last.sender.speaker, time.time()
        who = (conversation, speaker, now, is_admin)
        call_context = CallContext(*who, writes, query=query, zone=history.zone)
        seen = frozenset(each.seq for each in window)
        recall = history.search(query, self.recall_k, exclude=seen)
        if not request.uses_memory:  # the history is only this session, and no behavior hears of it
            recalled, memory_context = await recall, ""
        else:
            preparing = asyncio.create_task(self._prepare(call_context, history, message))
            try:
                recalled, memory_context = await recall, await preparing
            finally:  # if recall failed, the hooks must not go on without an owner
                await end_tasks([preparing])
            recalled = await history.with_facts(recalled)
        replies = await find_replied(request, history)
        background = Background(window, tuple(recalled), memory_context, replies)
        found = (*background.recalled_messages(), *background.replied_to())
        context = AgentContext(
            call_context,
            history,
            user_message=message,
            user_messages=request.messages,
            pictures=request.pictures,
            background=background,
            uses_memory=request.uses_memory,
            # In the order in which they spoke, the current one last.
            speakers=Speakers((*history.messages, *found, message)) if last.is_group else None,
            writes=writes,
        )
        here = self.assistant.within(context.conversation)
        showable = await in_thread_if_long(here.showable, context)
        context.background = replace(background, recalled=showable)
        return context

    async def _prepare(
        self, call_context: CallContext, history: ChatHistory, message: Message
    ) -> str:
        """Call the hooks of a new message in their order; return the memory context."""
        behaviors = self.assistant.behaviors
        await behaviors.on_resume(call_context)
        if not history.is_searchable:
            await behaviors.on_conversation_created(call_context)
        await behaviors.on_new_message(call_context, message)
        return await behaviors.on_model_invoke(call_context, [message])


def _query(message: Message, history: ChatHistory) -> str:
    """Return what to search for: a follow-up is searched for with the person's last message.

    So "and when was that?" finds again what the question before it found.
    """
    words = words_of(message.text)
    if len(words) > _MAX_WORDS or not asks(message.text):
        return message.text
    left = without_small_talk(words)
    content = len(asked_terms(left, {}))
    is_sum = any(word.isdecimal() for word in {*words} - {*left})
    is_small_talk = left != words and not content and (not left or is_sum)
    if content >= _MIN_CONTENT_WORDS or is_small_talk:
        return message.text
    said = (each for each in reversed(history.messages) if each.sender_id == message.sender_id)
    before = next((each.text for each in said if not each.is_refused), "")
    return f"{before}\n{message.text}".strip()


_MAX_REPLIES = 3


async def find_replied(request: Request, history: ChatHistory) -> tuple[RepliedTo, ...]:
    """Return what the newest messages of a turn reply to, oldest first; raise `LeaseLost`.

    The log's text counts, however old. Without it, Telegram's text does. A message that the model's
    server refused is left out. If a question is asked again, its log entry says what it replied to.
    """
    targets = [update.reply for update in request.updates if update.reply]
    if not targets and request.message.replied_to:
        targets = [ReplyTarget(request.message.replied_to, author="", sent_at=0, text="")]
    shows_photo = any(not each.message_id for each in request.pictures)  # one that was not sent
    found = []
    for target in list(dict.fromkeys(targets))[-_MAX_REPLIES:]:
        if target.message_id in request.message.message_ids:
            continue  # it is being answered in this very turn
        if target.message_id and _stored(history, target) is None:
            await history.fill()  # nothing to read if the process has the whole history already
        stored = _stored(history, target)
        if stored is None and target.author:
            given = Message(
                seq=0,
                exchange=0,
                role="assistant" if target.is_ours else "user",
                text=target.text,
                sent_at=target.sent_at,
                sender_id=target.author_id,
                sender_name=target.author,
                is_first_party=target.is_own
                and not target.text.startswith((FILE_MARK, PHOTO_MARK)),
                unseen="" if target.photo and shows_photo else target.unseen,
            )
            found.append(RepliedTo(given, quote=target.quote))
        elif stored and not stored.is_refused:
            question = _question(history, stored)
            question = _untrusted_of_others(question, request) if question else None
            # The text in a picture is somebody's.
            stored = replace(stored, is_first_party=stored.is_first_party and not target.photo)
            found.append(RepliedTo(_untrusted_of_others(stored, request), question, target.quote))
    return tuple(found)


def _stored(history: ChatHistory, target: ReplyTarget) -> Message | None:
    said = reversed(history.messages)
    return next((each for each in said if each.shows(target.message_id, target.sent_at)), None)


def _question(history: ChatHistory, answer: Message) -> Message | None:
    """Return the question of one of our answers, unless it was taken out of recall."""
    if answer.role != "assistant":
        return None
    exchange = (each for each in history.messages if each.exchange == answer.exchange)
    question = next((each for each in exchange if each.role == "user"), None)
    return None if question is None or question.seq in history.hidden else question


def _untrusted_of_others(message: Message, request: Request) -> Message:
    """Return the message; what another person wrote is untrusted for the one who points at it."""
    is_other = message.role == "user" and message.sender_id != request.message.sender_id
    return replace(message, is_first_party=message.is_first_party and not is_other)
