"""The prompt of one model call, under a budget that counts everything that is sent.

One system message, the window, the person's message behind the memory section, and the steps of
this run. The history stores only the message: nothing that is added here goes back into it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, tzinfo
from itertools import dropwhile

from bot.model.call import PromptMessage
from bot.prompt.fitting import messages_tokens, step_messages, tools_tokens
from bot.prompt.sections import alternating, memory_line, memory_section, spoken
from bot.prompt.system_prompt import UnusableSystemPrompt
from memory.behaviors.context import AgentContext
from memory.behaviors.tool import ToolDefinition
from memory.message import Message
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.search.excerpt import relevant_excerpt
from memory.search.message_search import SearchResult
from memory.text.tokens import MESSAGE_OVERHEAD, TokenCounter
from memory.text.untrusted_text import harmless

# Shares of what system message and tools leave. Memory gets no more than its share. Message and
# steps get theirs, and more if the window does not need it. The window gets the rest.
_MESSAGE_SHARE = 0.4
_MEMORY_SHARE = 0.2
_STEPS_SHARE = 0.25

# The share of the behaviors in the memory section; recalled messages get what is left.
_BEHAVIORS_SHARE = 0.6

# Below this a conversation is impossible.
_MIN_ROOM = 200

# Servers prime the reply with an assistant header.
_REPLY_HEADER = 3

# One remembered message: a paragraph, so that several fit.
_EXCERPT_TOKENS = 200

# A window that has to give way does so in steps of four exchanges.
_WINDOW_BLOCK = 8


@dataclass(frozen=True, slots=True)
class PromptBudget:
    """What one call may hold: `prompt_tokens` in all, `reply_tokens` of them left for the reply."""

    prompt_tokens: int
    reply_tokens: int


@dataclass(frozen=True, slots=True)
class PromptTokens:
    """Estimated tokens of each part, overheads included; servers may count a little fewer."""

    system: int
    tools: int
    window: int
    memory: int
    words: int
    steps: int

    @property
    def total(self) -> int:
        """Return the size of the whole prompt."""
        return self.system + self.tools + self.window + self.memory + self.words + self.steps


@dataclass(frozen=True, slots=True)
class Prompt:
    """Messages ready to be sent, and what they cost together with the tools."""

    messages: tuple[PromptMessage, ...]
    tokens: PromptTokens


class PromptAssembler:
    """Builds prompts around one constant system message and one constant list of tools.

    Raises `UnusableSystemPrompt` when these two leave no room to talk. `zone` dates memories.
    """

    def __init__(
        self,
        counter: TokenCounter,
        system: str,
        tools: Sequence[ToolDefinition],
        budget: PromptBudget,
        zone: tzinfo = UTC,
    ) -> None:
        self._counter = counter
        self._system = PromptMessage("system", system)
        self._zone = zone
        self._system_tokens = messages_tokens(counter, [self._system]) + _REPLY_HEADER
        self._tools_tokens = tools_tokens(counter, tools)
        fixed = self._system_tokens + self._tools_tokens
        self._room = budget.prompt_tokens - budget.reply_tokens - fixed
        if self._room < _MIN_ROOM:
            raise UnusableSystemPrompt(
                f"the system prompt ({self._system_tokens} tokens), the tools "
                f"({self._tools_tokens}) and the reply ({budget.reply_tokens}) leave {self._room} "
                f"of {budget.prompt_tokens} tokens, but {_MIN_ROOM} are needed: raise "
                "PROMPT_TOKENS or shorten the file named by SYSTEM_PROMPT_FILE"
            )

    def assemble(self, context: AgentContext) -> Prompt:
        """Return a prompt of at most `prompt_tokens - reply_tokens`.

        1. Memory gets its share, used or not, so that the window does not depend on what is
        recalled. 2. A message that is too long is shortened, 3. then the steps. 4. The window gives
        way in whole exchanges. 5. The memory section leaves out what the window shows.
        """
        dialogue = self._dialogue(context)
        memory_limit = int(self._room * _MEMORY_SHARE)
        steps_share = int(self._room * _STEPS_SHARE)
        unclaimed = self._room - memory_limit - _cost(dialogue)

        message_limit = max(unclaimed - steps_share, int(self._room * _MESSAGE_SHARE))
        words = self._counter.shorten(
            spoken(context.user_message, context.speakers), message_limit - MESSAGE_OVERHEAD
        )
        message_tokens = self._counter.count(words) + MESSAGE_OVERHEAD

        steps_limit = max(unclaimed - message_tokens, steps_share)
        steps = step_messages(self._counter, context.completed_steps, steps_limit)
        steps_tokens = messages_tokens(self._counter, steps)

        room = self._room - memory_limit - message_tokens - steps_tokens
        window = _within(room, dialogue)
        memory = self._memory(context, window, memory_limit - MESSAGE_OVERHEAD)
        memory_tokens = self._counter.count(memory) + MESSAGE_OVERHEAD if memory else 0

        return Prompt(
            (self._system, *_talk(window, memory, words), *steps),
            PromptTokens(
                system=self._system_tokens,
                tools=self._tools_tokens,
                window=_cost(window),
                memory=memory_tokens,
                words=message_tokens,
                steps=steps_tokens,
            ),
        )

    def _dialogue(self, context: AgentContext) -> tuple[Message, ...]:
        """Return the window's messages as they will be shown, counted so."""
        shown = ((message, spoken(message, context.speakers)) for message in context.window)
        return tuple(
            replace(message, text=text, tokens=self._counter.count(text))
            for message, text in shown
            if text.strip()
        )

    def _memory(self, context: AgentContext, window: Sequence[Message], limit: int) -> str:
        """Return the memory section, "" if there is nothing to show.

        The text of the behaviors comes first and takes at most its share. Messages of the window
        are left out. The best search results take the room first, each hit before its question or
        answer; they are shown in the order in which they were said. Of a long message only the
        passage is shown that the person's message is about.
        """
        excerpt_tokens, query = min(_EXCERPT_TOKENS, limit // 2), context.user_message.text
        left = limit - self._counter.count(memory_section([]))
        told = self._counter.shorten(harmless(context.memory_context), int(left * _BEHAVIORS_SHARE))
        left -= self._counter.count(f"{told}\n") if told else 0
        seen = {context.user_message.seq, *(message.seq for message in window)}
        lines: dict[int, str] = {}
        for message in _best_first(context.recalled):
            if message.seq in seen or not message.text.strip():
                continue
            seen.add(message.seq)
            excerpt = relevant_excerpt(
                harmless(message.text), query, excerpt_tokens, self._counter.count
            )
            line = memory_line(message, excerpt, context.now, self._zone, context.speakers)
            cost = self._counter.count(f"{line}\n")
            if cost <= left:
                left -= cost
                lines[message.seq] = line
        recalled = [lines[seq] for seq in sorted(lines)]
        return memory_section([told, *recalled] if told else recalled) if told or lines else ""


def _cost(messages: Sequence[Message]) -> int:
    """Count messages of the window; joining two of them never costs more."""
    return sum(message.tokens + MESSAGE_OVERHEAD for message in messages)


def _within(limit: int, dialogue: Sequence[Message]) -> tuple[Message, ...]:
    """Return the end of the dialogue that fits and begins with a user."""
    selector = BlockWindowMessageSelector(len(dialogue), limit, _WINDOW_BLOCK)
    return tuple(dropwhile(lambda message: message.role == "assistant", selector.select(dialogue)))


def _best_first(recalled: Sequence[SearchResult]) -> Iterator[Message]:
    for recollection in sorted(recalled, key=lambda recollection: -recollection.score):
        yield from sorted(
            recollection.messages, key=lambda message: message.seq != recollection.seq
        )


def _talk(window: Sequence[Message], memory: str, words: str) -> list[PromptMessage]:
    """Return window and last user message; a message without an answer joins the last one."""
    talk = alternating(window)
    unanswered = talk.pop().content if talk and talk[-1].role == "user" else ""
    content = "\n\n".join(part for part in (memory, unanswered, words) if part)
    return [*talk, PromptMessage("user", content)]
