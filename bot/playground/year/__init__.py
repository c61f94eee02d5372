"""A made-up year of talk: Maya, who does not exist, and what she told the bot.

`talk.txt` holds the messages with their facts and synopses, `allotment.md` is her document.
"""

import asyncio
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

import structlog

from bot.playground.inspector import Inspector
from bot.playground.scene import PageChat
from memory.behaviors.synopses import Synopses
from memory.behaviors.user_facts import UserFacts
from memory.documents import Library, Origin, Section, passages
from memory.learning.progress import LearnerBusy, learner_in
from memory.memory import Memory
from memory.message import Message, Role
from memory.scopes.changes import NotWritten, Write
from memory.scopes.entries import Fact, Synopsis
from memory.scopes.fields import STATE_LEARNER, State, Watermark
from memory.scopes.history import ChatHistory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.errors import LeaseLost, StoreError
from memory.store.keys import Scope
from memory.text.internal_model import InternalModelUnavailable

log = structlog.get_logger(__name__)

_FOLDER = Path(__file__).parent
_DOCUMENT = _FOLDER / "allotment.md"
_HEADING = re.compile(r"^(?=#)", re.MULTILINE)
_LAST_DAY = (11, 22)  # month and day of the last message: the talk has the seasons of its dates
_UNSAID = ("", "", "", "")  # behavior, feelings, preferences, and why the bot answered so
_CHANGING = ("Lives in", "Works as", "Leads the")  # facts that begin so are of a kind that changes


@dataclass(slots=True)
class Year:
    """All that is in the file."""

    sessions: list[list[Message]] = field(default_factory=list)  # oldest first
    facts: dict[str, list[str]] = field(default_factory=dict)  # by the message that they rest on
    # Wish, what was done and result, by the first message of the session.
    synopses: dict[str, list[str]] = field(default_factory=dict)
    questions: list[str] = field(default_factory=list)
    state: str = ""  # the running state at the end, as JSON


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
                year.state = text
    return year


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
        """Store the year and what was learned from it; raise `StoreError`.

        Nothing is left to be learned, so a year costs no internal calls.
        """
        began, here = time.monotonic(), place.conversation
        history = await ChatHistory.read(memory.histories, here)
        for session in self.year.sessions:
            for line in session:
                if line.role == "user":
                    await history.append_user_message(
                        line.text, line.sent_at, sender_id=here.chat_id, sender_name=place.title
                    )
                else:
                    await history.append_assistant_message(line.text, line.sent_at)
            self._report(len(history.messages))
        await self._store_learned(memory.scopes, here, history.messages)
        texts = _HEADING.split(_DOCUMENT.read_text("utf-8"))
        sections = [Section(text, text.partition("\n")[0].strip("# ")) for text in texts]
        origin = Origin(_DOCUMENT.name, nbytes=_DOCUMENT.stat().st_size, sender_id=here.chat_id)
        await Library(memory.scopes).put(
            await memory.scopes.read(here), origin, passages(sections, memory.tokens)
        )
        # With a model of embeddings, all of it gets its vectors; else they come after a turn.
        with suppress(LearnerBusy, EmbeddingsUnavailable, InternalModelUnavailable):
            await memory.learn(here)
        log.info("year filled in", messages=len(history.messages), seconds=time.monotonic() - began)

    async def _store_learned(
        self, scopes: Scopes, conversation: Scope, messages: Sequence[Message]
    ) -> None:
        here, person = await scopes.read(conversation), await scopes.read(conversation.facts_scope)
        said = {message.text: message for message in messages}
        facts = [
            Fact(0, text, (source,), on.sent_at, changes=text.startswith(_CHANGING))
            for on, texts in ((said[each], texts) for each, texts in self.year.facts.items())
            for source in [Source(conversation.tag, on.seq, here.source_epoch, on.sender_id)]
            for text in texts
        ]
        synopses = []
        for session in self.year.sessions:
            if summed_up := self.year.synopses.get(session[0].text):
                first, last = said[session[0].text], said[session[-1].text]
                span = first.sent_at, last.sent_at, first.seq, last.seq
                wish, done, result = summed_up
                synopses.append(Synopsis(0, wish, done, result, *_UNSAID, *span, conversation.tag))
        newest = messages[-1].seq
        learner = learner_in(person.scope, UserFacts.name, here)
        learned = [Watermark(each, newest) for each in (STATE_LEARNER, Synopses.name)]
        await scopes.write_all(
            {
                person: Write(facts, [Watermark(learner, newest)], learned_from=here),
                here: Write(synopses, [State(self.year.state), *learned]),
            }
        )
