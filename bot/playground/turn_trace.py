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
from memory.message import Message
from memory.search.message_search import SearchResult

_SENTENCE = re.compile(r"[^.!?…\n]+")
_WORD = re.compile(r"(\w+)")
_SECTION_END = "</memory>"
_QUOTED_CHARS = 12
"""A shorter sentence may stand in an answer by chance."""


@dataclass(frozen=True)
class TurnTrace:
    """One run of the agent; `number` counts in the conversation since the start."""

    number: int
    ran: AgentRan
    prompt: Prompt  # of its last model call

    @property
    def asked(self) -> Message:
        """The message that was answered."""
        return self.ran.context.user_message

    @cached_property
    def section(self) -> str:
        """The memory section of the prompt; empty if there is none."""
        message = next(m for m in reversed(self.prompt.messages) if m.role == "user")
        section, end, _ = message.content.partition(_SECTION_END)
        return section + end if end else ""

    @cached_property
    def found(self) -> "list[FoundMessage]":
        """What was found in older messages and why, best first."""
        best = sorted(self.ran.context.recalled, key=lambda result: -result.score)
        return [explained(each, self.asked.text, self.ran.reply) for each in best]


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
