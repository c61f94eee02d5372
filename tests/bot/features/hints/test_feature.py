"""Each hint comes at its moment, once, and at most one a week."""

from dataclasses import dataclass, field, replace
from types import MethodType
from typing import Any

import pytest

from bot.commands.notices import set_mute
from bot.features.hints.feature import HintNote, feature
from bot.language.catalogue import Catalogue
from bot.telegram.updates import IncomingMessage, Replaced, Sender
from bot.turn.request import Request
from memory.behaviors.context import AgentContext, CallContext, Person
from memory.memory import Memory
from memory.message import Message
from memory.queue.open_turn import Run
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from tests.bot.features.services import SENTENCES, services_of
from tests.memory.turns import ANN
from tests.settings import Settings

HOUR, DAY = 3_600, 86_400
HERE = Scope.of_chat(ANN)  # a private chat
QUESTION = "Where is my spare key?"


@dataclass
class Talk:
    """A private talk whose clock a test sets."""

    memory: Memory
    now: float = 1_800_000_000
    listens: bool = True
    said: list[str] = field(default_factory=list)

    async def hint(self, text: str, **changes: Any) -> str:
        """Return the name of the hint below the answer to `text`, "" for none."""
        history = await ChatHistory.read(self.memory.histories, HERE)
        await self.memory.scopes.read(Scope.of_person(ANN))  # as each turn does
        message = Message(0, 0, "user", text, self.now, sender_id=ANN)
        asked = IncomingMessage(
            1, ANN, 0, is_group=False, message_id=2, sent_at=int(self.now),
            sender=Sender(ANN, "Ann"), kind="text", text=text,
        )  # fmt: skip
        run = Run(heard=((2, text),)) if changes.pop("is_heard", False) else Run()
        last = replace(asked, **changes)
        request = Request((last,), message, (message,), run=run)
        here = Scope.of_chat(-7) if last.is_group else HERE
        context = AgentContext(CallContext(here, Person(), self.now), history, message)
        note = HintNote(self.memory.scopes, SENTENCES, self.listens)
        below = await note.below(request, context, "All right.")
        await history.append_user_message(text, self.now, sender_id=ANN)
        await history.append_assistant_message("All right.", self.now)
        self.now += 1
        known = {Catalogue().text("en", f"hints.{name}").strip("💡 *"): name for name in NAMES}
        return next((known[line.text.strip("💡 *")] for line in below.lines), "")


NAMES = ("voice", "again", "absence")


async def test_the_third_message_brings_one_voice_hint_and_none_for_a_week(memory: Memory) -> None:
    talk = Talk(memory)
    hints = [await talk.hint(text) for text in (QUESTION, "Two", "Three", "Four")]
    assert hints == ["", "", "voice", ""]
    talk.now += 6 * DAY
    assert await talk.hint(QUESTION) == ""
    talk.now += DAY
    assert await talk.hint(QUESTION) == "again"
    talk.now += 30 * DAY
    assert [await talk.hint("Five"), await talk.hint("Six")] == ["absence", ""]


@pytest.mark.parametrize(("model", "hears"), [("ear", True), ("ear", False), ("off", True)])
def test_the_bot_listens_only_with_a_transcriber_and_models_that_hear(
    memory: Memory, model: str, *, hears: bool
) -> None:
    services = services_of(memory, Settings.model_validate({"transcription_model": model}))
    [below] = feature(replace(services, models=replace(services.models, hears=hears))).notes
    assert isinstance(below, MethodType)
    note = below.__self__
    assert isinstance(note, HintNote)
    assert note.listens is (model == "ear" and hears)


@pytest.mark.parametrize(("listens", "is_heard"), [(False, False), (True, True)])
async def test_without_a_transcriber_or_after_a_voice_message_nobody_hears_of_voice(
    memory: Memory, *, listens: bool, is_heard: bool
) -> None:
    talk = Talk(memory, listens=listens)
    assert await talk.hint("One", is_heard=is_heard) == ""
    assert [await talk.hint(text) for text in ("Two", "Three", "Four")] == [""] * 3


async def test_the_same_question_an_hour_later_brings_recall(memory: Memory) -> None:
    talk = Talk(memory, listens=False)
    assert [await talk.hint(QUESTION), await talk.hint(QUESTION)] == ["", ""]
    talk.now += HOUR
    assert await talk.hint("Where's the key?") == ""
    assert await talk.hint("where is my SPARE key?") == "again"
    talk.now += 30 * DAY
    assert await talk.hint(QUESTION) == "absence"


async def test_other_answers_carry_no_hint(memory: Memory) -> None:
    talk = Talk(memory)
    assert [await talk.hint(text) for text in ("One", "Two")] == ["", ""]
    assert await talk.hint("Three", is_group=True) == ""
    assert await talk.hint("Three", command="retry") == ""
    assert await talk.hint("Three", replaced=Replaced((), (5,), ())) == ""
    await set_mute(memory.scopes, ANN, 1, is_muted=True)
    assert await talk.hint("Three") == ""
    await set_mute(memory.scopes, ANN, 2, is_muted=False)
    assert await talk.hint("Three") == "voice"
