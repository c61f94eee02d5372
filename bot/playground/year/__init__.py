"""A made-up year of talk: Maya, who does not exist, and what she told the bot.

`talk.txt` holds the messages with their facts and synopses, `allotment.md` is her document.
"""

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import orjson
import structlog

from bot.playground.inspector import Inspector
from bot.playground.offline_memory import fact_part, said_in, synopsis_part
from bot.playground.scene import PageChat
from memory.documents import Library, Origin, Section, passages
from memory.learning.progress import LearnerBusy
from memory.memory import Memory
from memory.message import Message, Role
from memory.scopes.changes import NotWritten
from memory.scopes.history import ChatHistory
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope
from memory.text.internal_model import AnswerShape, InternalModel, InternalModelUnavailable

log = structlog.get_logger(__name__)

_FOLDER = Path(__file__).parent
_DOCUMENT = _FOLDER / "allotment.md"
_HEADING = re.compile(r"^(?=#)", re.MULTILINE)
_LAST_DAY = (11, 22)
"""Month and day of the last message, so that the seasons in the talk are those of its dates."""
_CHANGING = ("Lives in", "Works as", "Leads the")
"""Facts that begin so are of a kind that changes."""
_SESSIONS_A_BATCH = 10
"""Sessions stored before they are learned; one internal call learns at most eight facts."""


@dataclass(slots=True)
class Year:
    """All that is in the file.

    `sessions` are lists of messages, oldest first. `facts` are listed by the message that they rest
    on, `synopses` (wish, what was done, result) by the first message of their session. `state` is
    the running state at the end.
    """

    sessions: list[list[Message]] = field(default_factory=list)
    facts: dict[str, list[str]] = field(default_factory=dict)
    synopses: dict[str, list[str]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    state: dict[str, object] = field(default_factory=dict)

    @property
    def lines(self) -> list[Message]:
        """All messages, oldest first."""
        return [line for session in self.sessions for line in session]


def read_year(now: datetime) -> Year:
    """Return the year of talk that ended on the last 22 November before `now` (with a zone)."""
    year = Year()
    month, day = _LAST_DAY
    end = now.replace(month=month, day=day, hour=0, minute=0, second=0, microsecond=0)
    end = end if end <= now else end.replace(year=end.year - 1)
    sent_at = end
    for line in (_FOLDER / "talk.txt").read_text("utf-8").splitlines():
        mark, _, text = line.partition(" ")
        match mark:
            case "=":
                days, _, clock = text.partition(" ")
                hour, minute = map(int, clock.split(":"))
                sent_at = (end - timedelta(int(days))).replace(hour=hour, minute=minute)
                year.sessions.append([])
            case ">" | "<":
                role: Role = "user" if mark == ">" else "assistant"
                year.sessions[-1].append(Message(0, 0, role, text, sent_at.timestamp()))
                sent_at += timedelta(seconds=40 if mark == ">" else 75)
            case "!":
                said = next(each for each in reversed(year.sessions[-1]) if each.role == "user")
                year.facts.setdefault(said.text, []).append(text)
            case "~":
                year.synopses[year.sessions[-1][0].text] = text.split(" | ")
            case "?":
                year.questions.append(text)
            case "*":
                year.state = orjson.loads(text)
    return year


class YearModel:
    """The internal model that knows what is to be learned from the made-up year.

    Inputs with other messages go to `model`, so that a year costs no internal calls.
    """

    def __init__(self, year: Year, model: InternalModel) -> None:
        self._year = year
        self._model = model
        self._texts = {line.text for line in year.lines}

    async def fill(
        self, instructions: str, content: str, shape: AnswerShape
    ) -> Mapping[str, object]:
        """Return the parts of the year's messages; raise `InternalModelUnavailable`."""
        facts, synopses = said_in(content, "facts"), said_in(content, "synopses")
        if not all(each.text in self._texts for each in (*facts, *synopses)):
            return await self._model.fill(instructions, content, shape)
        learned = [
            fact_part(fact, each.number, changes=fact.startswith(_CHANGING))
            for each in facts
            for fact in self._year.facts.get(each.text, [])
        ]
        synopsis = self._year.synopses.get(synopses[0].text, []) if synopses else []
        return {
            "running_state": self._year.state,
            "facts": {"facts": learned},
            "synopses": synopsis_part(*synopsis),
        }

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose by the model behind; raise `InternalModelUnavailable`."""
        return await self._model.write(instructions, content, max_tokens)


class YearFiller:
    """Fills the guest's chat in the background; `done` counts the stored messages while it runs."""

    def __init__(self, inspector: Inspector) -> None:
        self.year = read_year(datetime.now().astimezone())
        self.done: int | None = None
        self._inspector = inspector
        self._task: asyncio.Task[None] | None = None

    def start(self) -> PageChat:
        """Return the guest's chat; if she is new, begin to fill it as soon as the bot serves."""
        scene = self._inspector.scene
        if scene.guest:
            return scene.guest
        place, self.done = scene.add_guest(), 0
        self._task = asyncio.create_task(self._fill(place))
        return place

    async def erase(self) -> None:
        """Erase the year and take the guest off the page; raise `StoreError`."""
        await self.stop()
        await self._inspector.remove_guest()

    async def stop(self) -> None:
        """Stop filling, if it still runs."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _fill(self, place: PageChat) -> None:
        try:
            await self._inspector.serving.wait()
            if memory := self._inspector.memory:
                await self._store(memory, place)
                await self._inspector.show_stored(memory, place)
        except (StoreError, NotWritten, LeaseLost) as error:
            log.warning("year not filled in", reason=type(error).__name__)
            with suppress(StoreError):
                await self._inspector.remove_guest()
        finally:
            self._report(None)

    def _report(self, done: int | None) -> None:
        self.done = done
        self._inspector.telegram.note_change()

    async def _store(self, memory: Memory, place: PageChat) -> None:
        """Store the year and learn from it.

        Raise `StoreError`. If a model gives no answer, learning goes on later, as after a turn.
        """
        began, here = time.monotonic(), place.conversation
        history = await ChatHistory.read(memory.histories, here)
        for number, session in enumerate(self.year.sessions):
            for line in session:
                if line.role == "user":
                    await history.append_user_message(
                        line.text, line.sent_at, sender_id=here.chat_id, sender_name=place.title
                    )
                else:
                    await history.append_assistant_message(line.text, line.sent_at)
            if number % _SESSIONS_A_BATCH == 0:
                await _learn(memory, here)
                self._report(len(history.messages))
        texts = _HEADING.split(_DOCUMENT.read_text("utf-8"))
        sections = [Section(text, text.partition("\n")[0].strip("# ")) for text in texts]
        origin = Origin(_DOCUMENT.name, nbytes=_DOCUMENT.stat().st_size, sender_id=here.chat_id)
        await Library(memory.scopes).put(
            await memory.scopes.read(here), origin, passages(sections, memory.tokens)
        )
        await _learn(memory, here)
        log.info("year filled in", messages=len(history.messages), seconds=time.monotonic() - began)


async def _learn(memory: Memory, here: Scope) -> None:
    with suppress(LearnerBusy, EmbeddingsUnavailable, InternalModelUnavailable):
        await memory.learn(here)
