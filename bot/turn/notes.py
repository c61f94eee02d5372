"""What features add below an answer: lines, questions with buttons, and corrections."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bot.reply.parts import Part
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.context import AgentContext

QUESTION_ALONE = "…"
"""What a model answers if it has nothing to add to a question by buttons."""


@dataclass(frozen=True, slots=True)
class Below:
    """What one note adds to an answer."""

    lines: tuple[Part, ...] = ()  # joined to the last part of the answer
    questions: tuple[Part, ...] = ()  # messages of their own, behind it
    correction: Part | None = None  # says that a claim of the answer is not so; one is shown


Note = Callable[[Request, AgentContext, str], Awaitable[Below]]
"""Looks at a run and at the text of its answer; raises `StoreError`.

Where a note asks something, the person may decline, so nothing that tools did is learned then.
"""

Finish = Callable[[Request, Outbox], Awaitable[Outbox]]
"""Changes an answer of the agent before it is stored; raises nothing."""
