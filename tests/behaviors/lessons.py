"""What behaviors are tried with: talk, notebooks filled by hand, lessons, a scripted model."""

import asyncio
from collections.abc import Mapping, Sequence

from memory.behaviors.behavior import AIContextBehavior
from memory.keys import Conversation
from memory.learning.lesson import Lesson
from memory.learning.model import InternalModelUnavailable
from memory.messages import Message
from memory.notebook.codec import written
from memory.notebook.notebook import Notebook
from memory.notebook.notebooks import Notebooks, Writing
from memory.notebook.records import Entry
from memory.occasion import Occasion, Person
from memory.protocol.turns import Notes
from memory.shape import Shape

DAY = 86_400
NOW = 1_763_700_000.0  # 21 November 2025
ANNA = Person(7, "Anna", "Berg")
PRIVATE = Conversation.of_chat(7)
GROUP = Conversation.of_chat(-100)


def occasion(conversation: Conversation = PRIVATE, speaker: Person = ANNA) -> Occasion:
    return Occasion(conversation, speaker, NOW)


def said(seq: int, text: str, *, is_own: bool = True, at: float = NOW, tokens: int = 10) -> Message:
    """Return what a person said; two messages are an exchange."""
    return Message(
        seq=seq,
        exchange=(seq + 1) // 2,
        role="user",
        text=text,
        sent_at=at,
        sender_id=ANNA.id,
        sender_name="Anna",
        tokens=tokens,
        is_own=is_own,
    )


def answered(seq: int, text: str, *, at: float = NOW, tokens: int = 10) -> Message:
    return Message(seq, (seq + 1) // 2, "assistant", text, at, tokens=tokens)


def notebook(
    *entries: Entry, state: str = "", scope: Conversation = PRIVATE, epoch: str = "3"
) -> Notebook:
    """Return a notebook that holds these entries, with ids from 1."""
    filled = Notebook(scope, (epoch, "0"))
    stored = tuple((at, *written(entry)) for at, entry in enumerate(entries, start=1))
    fields = {"state": state} if state else {}
    filled.add(Notes(fields, stored, len(stored), "", (), 0))
    return filled


def lesson(
    *messages: Message,
    here: Notebook | None = None,
    facts: Notebook | None = None,
    conversation: Conversation = PRIVATE,
    digests: Mapping[int, str] | None = None,
) -> Lesson:
    return Lesson(
        conversation=conversation,
        messages=messages,
        digests=digests or {},
        here=here or notebook(scope=conversation),
        facts=facts or notebook(scope=Conversation.of_person(ANNA.id)),
        now=NOW,
    )


async def store_entries(notebooks: Notebooks, scope: Conversation, *entries: Entry) -> None:
    """Write entries to a scope as learning does; the ids continue."""
    await notebooks.write(await notebooks.read(scope), Writing(entries))
    await notebooks.read(scope)


async def told(behavior: AIContextBehavior, text: str, at: Occasion | None = None) -> str:
    """Return what a behavior tells the model when a person says something."""
    return await behavior.on_model_invoke(at or occasion(), [said(0, text)])


class ScriptedModel:
    """Writes what it was given to write and notes what it was asked.

    An error is raised instead; after the last answer it never answers again.
    """

    def __init__(self, *answers: str | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[str] = []

    async def fill(self, instructions: str, material: str, shape: Shape) -> Mapping[str, object]:
        raise InternalModelUnavailable(f"{instructions}{material}{shape}")

    async def write(self, instructions: str, material: str, max_tokens: int) -> str:
        assert instructions
        assert max_tokens
        self.asked.append(material)
        if not self._answers:
            await asyncio.Event().wait()
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def texts(entries: Sequence[Entry]) -> list[str]:
    return [getattr(entry, "text", type(entry).__name__) for entry in entries]
