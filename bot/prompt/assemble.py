"""The prompt of one model call, within a budget that counts everything that is sent.

A prompt is one system message, the window, the memory section with the person's message after it,
and the steps of this run. The history stores only the message, without what is added here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import InitVar, dataclass, replace
from functools import cached_property
from importlib import resources
from itertools import accumulate, dropwhile
from pathlib import Path
from typing import TypeVar

from bot.model.call import PromptMessage
from bot.model.chat_model import NOT_SEEN
from bot.prompt.memory_context import Offer, RecallPacker, fit_memory_context
from bot.prompt.sections import (
    alternating,
    codes_of,
    messages_tokens,
    reply_lines,
    step_messages,
    tools_tokens,
    window_text,
)
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolDefinition
from memory.message import Message, Picture
from memory.scopes.selectors import BlockWindowMessageSelector, cost_of
from memory.search.message_search import SearchResult
from memory.search.words import beginnings_of
from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from memory.text.untrusted_text import escaped

# Shares of the tokens that the system message, the tools and the reply leave. Memory gets its
# share, and up to the larger one if the window leaves it idle. Message and steps get at least
# theirs, and more if the window does not need it. The window gets the rest.
_MESSAGE_SHARE = 0.4
MEMORY_SHARE = 0.19
_IDLE_MEMORY_SHARE = 0.5
_STEPS_SHARE = 0.25

# With fewer tokens no conversation is possible.
_MIN_ROOM = 200

# A note that not all pictures are seen, and the overhead of the message.
_NOTE_TOKENS = 24

# Servers put an assistant header before the reply.
_REPLY_HEADER = 3

# A window that does not fit is cut in steps of four exchanges.
_WINDOW_BLOCK = 8

# More characters of recalled messages are read in a thread.
_LONG_CHARS = 30_000

# Bounds the file of an operator's system prompt.
_MAX_SYSTEM_BYTES = 64 * 1024

T = TypeVar("T")


class UnusableSystemPrompt(Exception):
    """Raised at start when the system prompt cannot be used; the text says what to change."""


UseSystemPrompt = Callable[[Path | None], bool]
"""Uses the operator's file, or ours for None, from now on; returns whether the prompt differs.

Raises `UnusableSystemPrompt` and changes nothing if the file cannot be used.
"""


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """Tokens of one call."""

    prompt_tokens: int  # in all
    reply_tokens: int  # of these for the reply
    leading: tuple[str, ...] = ()  # text under these headings is never left out


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages ready to be sent."""

    messages: tuple[PromptMessage, ...]
    sizes: Mapping[str, int]  # tokens of each part with overheads; servers may count a few less
    used: tuple[str, ...] = ()  # the memories whose text is in it, as in `CallContext.used`


@dataclass(eq=False)
class PromptAssembler:
    """Builds prompts around one constant system message and one constant list of tools.

    Raise `UnusableSystemPrompt` if these two leave too few tokens for a conversation.
    """

    counter: TokenCounter
    system: InitVar[str]
    tools: Sequence[ToolDefinition]
    budget: PromptBudget

    def __post_init__(self, system: str) -> None:
        self._recall = RecallPacker(self.counter)
        self._most = self.budget.prompt_tokens - self.budget.reply_tokens
        self._system = PromptMessage("system", "")
        self.use_system(system)

    def use_system(self, system: str) -> bool:
        """Build prompts around this system message from now on; return whether it is another.

        Raise `UnusableSystemPrompt` and keep the one before.
        """
        budget, message = self.budget, PromptMessage("system", system)
        front = self._front(message, self.counter.at_most)  # without the vocabulary
        if self._most - sum(front) < _MIN_ROOM:
            front = self._front(message, self.counter.count)
        if (room := self._most - sum(front)) < _MIN_ROOM:
            raise UnusableSystemPrompt(
                f"the system prompt ({front[0]} tokens), the tools ({front[1]}) and the "
                f"reply ({budget.reply_tokens}) leave {room} of {budget.prompt_tokens} tokens, but "
                f"{_MIN_ROOM} are needed: raise PROMPT_TOKENS or shorten the file named by "
                "SYSTEM_PROMPT_FILE"
            )
        is_other = message != self._system
        self._system = message
        self.__dict__.pop("_sizes", None)
        return is_other

    @cached_property
    def _sizes(self) -> tuple[int, int]:
        return self._front(self._system, self.counter.count)

    def _front(self, system: PromptMessage, count: Callable[[str], int]) -> tuple[int, int]:
        return messages_tokens(count, [system]) + _REPLY_HEADER, tools_tokens(count, self.tools)

    def assemble(self, context: AgentContext) -> Prompt:
        """Return a prompt of at most `prompt_tokens - reply_tokens` tokens.

        1. Memory keeps its share even if it does not need it, so that the window does not depend on
           what is recalled.
        2. A message that is too long is shortened; with pictures to a half, and these get the rest.
        3. Memory also gets what the window and the message leave idle. The share of the steps is
           kept free from the first call on, so all prompts of a run have the same memory section.
        4. The steps are shortened.
        5. Whole exchanges of the window are left out.
        6. The memory section leaves out what the window shows.
        """
        dialogue = self._dialogue(context)
        available = self._most - sum(self._sizes)
        memory_limit = int(available * MEMORY_SHARE)
        steps_share = int(available * _STEPS_SHARE)
        unclaimed = available - memory_limit - cost_of(dialogue)

        message_limit = max(unclaimed - steps_share, int(available * _MESSAGE_SHARE))
        said = context.user_message
        parts = context.user_messages or (said,)
        zone = context.call_context.zone
        words = "\n\n".join(window_text(part, context.speakers, zone) for part in parts)
        words_tokens = min(self._tokens_of(words, said) + _NOTE_TOKENS, message_limit // 2)
        pictures, pictures_tokens = _fitting(context.pictures, message_limit - words_tokens)
        if len(pictures) < len(context.pictures) or context.are_pictures_refused:
            some = f"[you can see {len(pictures)} of {len(context.pictures)} pictures]"
            words = f"{words}\n\n{some if pictures else NOT_SEEN}"
        text = self.counter.shorten(words, message_limit - pictures_tokens - MESSAGE_OVERHEAD)
        message_tokens = self._tokens_of(text, said) + pictures_tokens + MESSAGE_OVERHEAD

        idle = max(0, unclaimed - message_tokens - steps_share)
        idle = min(idle, int(available * _IDLE_MEMORY_SHARE) - memory_limit)
        memory_limit += idle
        steps_limit = max(unclaimed - idle - message_tokens, steps_share)
        steps = step_messages(self.counter, context.completed_steps, steps_limit)
        steps_tokens = messages_tokens(self.counter.count, steps)

        room = available - memory_limit - message_tokens - steps_tokens
        fitting = BlockWindowMessageSelector(len(dialogue), room, _WINDOW_BLOCK).select(dialogue)
        window = tuple(dropwhile(lambda message: message.role == "assistant", fitting))
        memory, used = self._memory(context, window, memory_limit - MESSAGE_OVERHEAD)
        memory_tokens = self.counter.count(memory) + MESSAGE_OVERHEAD if memory else 0

        talk = alternating(window)
        # A message without an answer is joined to the last one.
        unanswered = talk.pop().content if talk and talk[-1].role == "user" else ""
        content = "\n\n".join(filter(None, (memory, unanswered, text)))
        return Prompt(
            (self._system, *talk, PromptMessage("user", content, pictures=pictures), *steps),
            {
                "system": self._sizes[0],
                "tools": self._sizes[1],
                "window": cost_of(window),
                "memory": memory_tokens,
                "message": message_tokens,
                "steps": steps_tokens,
            },
            used,
        )

    def showable(self, context: AgentContext) -> tuple[SearchResult, ...]:
        """Return the recalled results that a prompt may show.

        Others must not mark the answer as untrusted; if none could, nothing is left out.
        """
        background, query = context.background, context.call_context.query
        if all(message.is_first_party for message in background.recalled_messages()):
            return background.recalled
        window = {message.seq for message in background.window}
        limit = int((self._most - sum(self._sizes)) * _IDLE_MEMORY_SHARE)
        lines = self._recall.ranked(context, background.recalled, query, limit, window)
        return tuple(
            result
            for result in background.recalled
            if any(message.seq in lines for message in result.messages)
        )

    def _tokens_of(self, text: str, message: Message) -> int:
        """Count the text of a message, unless it is shown as it was stored, with its tokens."""
        return (text == message.text and message.tokens) or self.counter.count(text)

    def _dialogue(self, context: AgentContext) -> tuple[Message, ...]:
        window, speakers = context.background.window, context.speakers
        zone = context.call_context.zone
        shown = ((message, window_text(message, speakers, zone)) for message in window)
        return tuple(
            # The tokens of a text that is shown as it was stored are stored with it.
            message
            if text == message.text and message.tokens
            else replace(message, text=text, tokens=self.counter.count(text))
            for message, text in shown
            if text.strip()
        )

    def _memory(
        self, context: AgentContext, window: Sequence[Message], limit: int
    ) -> tuple[str, tuple[str, ...]]:
        """Return the memory section, "" if there is nothing to show, and what stands in it.

        What the person replies to comes last, right before their words, and takes at most half. The
        text of the behaviors and recalled messages share the rest (`fit_memory_context`). Messages
        of the window are left out.
        """
        query, noted = context.call_context.query, context.call_context.used
        left = limit - self.counter.count("<memory>\n</memory>")
        replies = reply_lines(self.counter, context, window, left // 2)
        left -= sum(self.counter.count(f"{line}\n") for line in replies)
        background = context.background
        shown_apart = (context.user_message, *window, *background.replied_to())
        seen = {message.seq for message in shown_apart}
        found = self._recall.ranked(context, background.recalled, query, left, seen)
        offer = Offer(
            context=escaped(background.memory_context),
            noted=[escaped(line) for line in noted.values()],
            recalled=found,
            repeated=_repeated(context),
            leading=self.budget.leading,
        )
        learned, recalled = fit_memory_context(self.counter, offer, query, left)
        shown = [*([learned] if learned else ()), *recalled.values(), *replies]
        section = "\n".join(("<memory>", *shown, "</memory>")) if shown else ""
        used = [code for code, line in noted.items() if escaped(line) in learned]
        used += codes_of(background.recalled, recalled)
        for result in background.recalled:
            for seq, later in result.later.items():
                if seq in recalled:
                    used += [f"f{each.fact_id}" for each in later if each.fact_id]
        return section, tuple(dict.fromkeys(used))


def _repeated(context: AgentContext) -> dict[int, list[str]]:
    """Return the lines of facts that say all that a recalled message says, by its sequence."""
    used = context.call_context.used
    repeated: dict[int, list[str]] = {}
    for result in context.background.recalled:
        for message in result.messages:
            facts = [used.get(f"f{id_}", "") for id_ in result.repeated_by.get(message.seq, ())]
            words = beginnings_of(message.text) if facts else set[str]()
            alike = (each for each in facts if words <= beginnings_of(each))
            repeated[message.seq] = list(map(escaped, alike))
    return repeated


def _fitting(pictures: Sequence[Picture], limit: int) -> tuple[tuple[Picture, ...], int]:
    """Return as many of the first pictures as take at most `limit` tokens, and their tokens."""
    sums = [tokens for tokens in accumulate(each.tokens for each in pictures) if tokens <= limit]
    return tuple(pictures[: len(sums)]), max(sums, default=0)


async def in_thread_if_long(step: Callable[[AgentContext], T], context: AgentContext) -> T:
    """Run a step that reads the recalled messages; in a thread if they are long.

    A text of made-up words takes 2 ms for a thousand characters, and other turns would wait.
    """
    chars = sum(len(message.text) for message in context.background.recalled_messages())
    return await asyncio.to_thread(step, context) if chars > _LONG_CHARS else step(context)


def load_system_prompt(path: Path | None) -> str:
    """Return the text of the operator's file, or ours when `path` is None.

    Raise `UnusableSystemPrompt` if the file cannot be read, is empty, is larger than 64 KiB or is
    not UTF-8.
    """
    if path is None:
        return resources.files(__package__).joinpath("system_prompt.md").read_text("utf-8").strip()
    named = f"SYSTEM_PROMPT_FILE: {path}"
    try:
        with path.open("rb") as file:
            content = file.read(_MAX_SYSTEM_BYTES + 1)
    except OSError as error:
        raise UnusableSystemPrompt(f"{named} cannot be read ({error.strerror})") from error
    if len(content) > _MAX_SYSTEM_BYTES:
        raise UnusableSystemPrompt(f"{named} is larger than {_MAX_SYSTEM_BYTES // 1024} KiB")
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError as error:
        raise UnusableSystemPrompt(f"{named} is not UTF-8 (byte {error.start})") from error
    if not text:
        raise UnusableSystemPrompt(f"{named} is empty")
    return text
