"""Fills a chat with the made-up year, through the store and the learning that every turn uses."""

import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress

import structlog

from bot.documents.formats import Formats, Limits
from bot.playground.offline_memory import said_in, synopsis_part
from bot.playground.year import DOCUMENT, Year
from memory.documents.chunking import passages
from memory.documents.library import Library, Origin
from memory.learning.learner import LearnerBusy
from memory.memory import Memory
from memory.scopes.history import ChatHistory
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.keys import Scope
from memory.text.internal_model import InternalModel, InternalModelUnavailable
from memory.text.shape import Shape

log = structlog.get_logger(__name__)

_SESSIONS_A_BATCH = 4
"""Sessions stored before they are learned; one internal call learns at most eight facts."""


class YearModel:
    """The internal model that knows what is to be learned from the made-up year.

    Inputs with other messages go to `model`, so that a year costs no internal calls.
    """

    def __init__(self, year: Year, model: InternalModel) -> None:
        self._year = year
        self._model = model
        self._texts = {line.text for line in year.lines}

    async def fill(self, instructions: str, material: str, shape: Shape) -> Mapping[str, object]:
        """Return the parts of the year's messages; raise `InternalModelUnavailable`."""
        facts, synopses = said_in(material, "facts"), said_in(material, "synopses")
        if not all(each.text in self._texts for each in (*facts, *synopses)):
            return await self._model.fill(instructions, material, shape)
        learned = [
            {"text": fact, "message": each.number, "replaces": None, "repeats": None}
            for each in facts
            for fact in self._year.facts.get(each.text, [])
        ]
        synopsis = self._year.synopses.get(synopses[0].text, []) if synopses else []
        return {
            "running_state": self._year.state,
            "facts": {"facts": learned},
            "synopses": synopsis_part(*synopsis),
        }

    async def write(self, instructions: str, material: str, max_tokens: int) -> str:
        """Return prose by the model behind; raise `InternalModelUnavailable`."""
        return await self._model.write(instructions, material, max_tokens)


async def fill_year(
    memory: Memory, year: Year, here: Scope, name: str, report: Callable[[int], Awaitable[None]]
) -> None:
    """Store the year in a private conversation of `name`, then learn from it.

    `report` gets the number of stored messages from time to time. Raise `StoreError`. If a model
    gives no answer, learning goes on later, as after a turn.
    """
    began = time.monotonic()
    history = await ChatHistory.read(memory.histories, here)
    for number, session in enumerate(year.sessions):
        for line in session:
            if line.role == "user":
                await history.append_user_message(
                    line.text, line.sent_at, sender_id=here.chat_id, sender_name=name
                )
            else:
                await history.append_assistant_message(line.text, line.sent_at)
        if number % _SESSIONS_A_BATCH == 0:
            await _learn(memory, here)
            await report(len(history.messages))
    sections = await Formats(Limits()).sections(DOCUMENT.read_bytes(), "markdown")
    origin = Origin(DOCUMENT.name, nbytes=DOCUMENT.stat().st_size, sender_id=here.chat_id)
    await Library(memory.store, memory.scopes).put(
        await memory.scopes.read(here), origin, passages(sections, memory.tokens)
    )
    await _learn(memory, here)
    await report(len(year.lines))
    log.info("year filled in", messages=len(year.lines), seconds=time.monotonic() - began)


async def _learn(memory: Memory, here: Scope) -> None:
    with suppress(LearnerBusy, EmbeddingsUnavailable, InternalModelUnavailable):
        await memory.learn(here)
