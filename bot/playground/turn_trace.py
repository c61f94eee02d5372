"""What the page shows of one run of the agent, and why an older message was found for it."""

import re
from collections.abc import Callable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property

from markupsafe import Markup, escape

from bot.playground.offline_words import NUMBER, content_words, meanings
from bot.prompt.assemble import Prompt
from bot.turn.observers import AgentRan
from memory.behaviors.steps import CompletedStep
from memory.message import Message
from memory.search.message_search import SearchResult
from memory.store.keys import Scope

_SENTENCE = re.compile(r"[^.!?…\n]+")
_WORD = re.compile(r"(\w+)")
_SECTION_END = "</memory>"
_QUOTED_CHARS = 12
"""A shorter sentence may stand in an answer by chance."""


@dataclass(frozen=True)
class TurnTrace:
    """One run of the agent as it was at its end."""

    conversation: Scope
    user_message: Message
    window: tuple[Message, ...]
    recalled: tuple[SearchResult, ...]
    prompt: Prompt  # of its last model call
    steps: tuple[CompletedStep, ...]
    began_at: float  # in Unix seconds
    seconds: float  # with loading the context
    reply: str  # "" if it failed
    failure: str = ""
    number: int = 0  # counts in the conversation since the start

    @classmethod
    def of(cls, ran: AgentRan, prompt: Prompt) -> "TurnTrace":
        """Return what is shown of a run."""
        context = ran.context
        return cls(
            conversation=context.conversation,
            user_message=context.user_message,
            window=context.window,
            recalled=context.recalled,
            prompt=prompt,
            steps=tuple(context.completed_steps),
            began_at=context.now,
            seconds=ran.seconds,
            reply=ran.reply,
            failure=ran.failure,
        )

    @cached_property
    def parts(self) -> list[tuple[str, int, float]]:
        """The parts of the prompt in their order: name, tokens, percent of all tokens."""
        tokens = self.prompt.tokens
        sizes = {
            "Tools": tokens.tools,
            "System message": tokens.system,
            "Recent messages": tokens.window,
            "Memory": tokens.memory,
            "Your message": tokens.message,
            "Tool steps": tokens.steps,
        }
        total = max(1, tokens.total)
        return [(name, size, round(100 * size / total, 1)) for name, size in sizes.items()]

    @cached_property
    def section(self) -> str:
        """The memory section of the prompt; empty if there is none."""
        message = next(m for m in reversed(self.prompt.messages) if m.role == "user")
        section, end, _ = message.content.partition(_SECTION_END)
        return section + end if end else ""

    @cached_property
    def found(self) -> "list[FoundMessage]":
        """What was found in older messages and why, best first."""
        best = sorted(self.recalled, key=lambda result: -result.score)
        return [explained(each, self.user_message.text, self.reply) for each in best]


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason: how a message was found, and a sentence about it."""

    how: str
    why: str


@dataclass(frozen=True, slots=True)
class FoundMessage:
    """A message that was found (`hit`), and why."""

    result: SearchResult
    hit: Message
    shared: tuple[str, ...]  # the words that it has in common with the question
    reasons: tuple[Reason, ...]
    is_quoted: bool  # the answer repeats one of its sentences

    def marked(self, text: str) -> Markup:
        """Return a text as HTML with the shared words marked."""
        shared = {word.casefold() for word in self.shared}
        pieces = (
            Markup("<mark>{}</mark>").format(piece) if piece.casefold() in shared else escape(piece)
            for piece in _WORD.split(text)
        )
        return Markup("").join(pieces)


def explained(result: SearchResult, question: str, answer: str) -> FoundMessage:
    """Return a search result with the reasons for it."""
    hit = result.hit
    wanted = meanings(question)
    wanted.pop(NUMBER, "")  # a number does not answer every question for one
    equal = _shared(hit.text, lambda word: set(meanings(word)), set(wanted))
    alike = _shared(hit.text, lambda word: set(meanings(word).values()), set(wanted.values()))
    alike = tuple(word for word in alike if word not in equal)
    sentences = (each.strip() for each in _SENTENCE.findall(hit.text))
    is_quoted = any(len(each) >= _QUOTED_CHARS and each in answer for each in sentences)
    return FoundMessage(
        result, hit, equal + alike, tuple(_reasons(result, equal, alike)), is_quoted
    )


def _shared(
    text: str, keys: Callable[[str], AbstractSet[str]], wanted: AbstractSet[str]
) -> tuple[str, ...]:
    """Return the content words of a text that have a wanted key, each once."""
    words = dict.fromkeys(_WORD.findall(text))
    return tuple(word for word in words if content_words(word) and wanted & keys(word))


def _reasons(
    result: SearchResult, equal: tuple[str, ...], alike: tuple[str, ...]
) -> Iterator[Reason]:
    if equal:
        yield Reason("By words", f"it contains {_listed(equal)}, as your question does")
    elif alike and result.lexical > 0:
        yield Reason("By words", f"{_listed(alike)} means the same as a word of your question")
    if result.is_boosted:
        yield Reason("By a neighbor", "a message right next to it matches your question")
    elif result.lexical > 0 and not equal and not alike:
        yield Reason("By its session", "other messages of the same session match your question")
    if result.dense > 0:
        why = "its vector is close to the vector of your question"
        if alike:
            why = f"{_listed(alike)} means the same as a word of your question"
        elif result.lexical <= 0:
            why = "its vector is close to that of your question or of the best match"
        yield Reason("By meaning", why)


def _listed(words: tuple[str, ...]) -> str:
    return " and ".join(f"“{word}”" for word in words[:3])
