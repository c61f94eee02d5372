"""Whose words the model was shown before a tool wants something written: the rule when to ask.

Pure. What is kept or erased after others' words may have been put into the model's mouth, so the
person is asked by a button first. See README.md.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.behaviors.context import AgentContext
from memory.behaviors.text_rag import HEADING as DOCUMENTS_HEADING
from memory.behaviors.wording import UNTRUSTED_MARK
from memory.message import Message
from memory.scopes.records import Fact
from memory.scopes.writes import Remember, SetDomain, ToolWrite

_WORD = re.compile(r"\d+|\w{4,}")
_STEM = 4
"""Letters by which forms of a word are alike; shorter words say little."""


def holds_untrusted(context: AgentContext) -> bool:
    """Say whether the prompt of this run holds untrusted text.

    That is what was forwarded or quoted, read from documents or brought by tools, and what rests on
    such text: answers, the running state, synopses.
    """
    return _is_any_untrusted(context.window) or is_answer_untrusted(context)


def is_answer_untrusted(context: AgentContext) -> bool:
    """Say whether an answer written now may repeat untrusted text.

    Earlier answers in the window do not count: otherwise one forwarded message would mark all
    answers from then on.
    """
    recalled = (message for found in context.recalled for message in found.messages)
    asked = (message for message in context.window if message.role == "user")
    results = (result for step in context.completed_steps for result in step.results)
    return (
        _is_any_untrusted((context.words, *asked, *recalled))
        or any(result.is_untrusted for result in results)
        or DOCUMENTS_HEADING in context.told
        or UNTRUSTED_MARK in context.told
    )


def must_ask(context: AgentContext, write: ToolWrite, facts: Sequence[Fact] = ()) -> bool:
    """Say whether the person is asked before this is written; `facts` are those of the scope.

    In a group the words of its other members are enough to ask. But a new fact that the speaker
    says in this very message is kept at once.
    """
    if holds_untrusted(context):
        return True
    if isinstance(write, SetDomain) or not _holds_other_members(context, facts):
        return False
    if isinstance(write, Remember) and not write.replaces:
        return not _is_said_in(context.words, write.text)
    return True


def held_back(context: AgentContext, write: ToolWrite) -> ToolWrite:
    """Return a write as it is to be stored when a tool noted it without looking at the rule."""
    if write.asks_first or not must_ask(context, write):
        return write
    return replace(write, asks_first=True, sender_id=context.words.sender_id)


def _holds_other_members(context: AgentContext, facts: Iterable[Fact]) -> bool:
    """Say whether in a group anybody but the speaker has ever said anything to the assistant."""
    if not context.is_group:
        return False
    said = (m.sender_id for m in context.chat_history.messages if m.role == "user")
    known = (source.sender_id for fact in facts for source in fact.sources)
    return bool({*said, *known} - {context.words.sender_id})


def _is_said_in(message: Message, text: str) -> bool:
    """Say whether all words of a text are a message's own, but for their endings."""
    return _stems(text) <= _stems(f"{message.sender_name} {message.text}")


def _stems(text: str) -> set[str]:
    return {word if word.isdigit() else word[:_STEM] for word in _WORD.findall(text.casefold())}


def _is_any_untrusted(messages: Iterable[Message]) -> bool:
    return any(not message.is_first_party for message in messages)
