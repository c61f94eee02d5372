"""Frames of a draft, in simulated time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import pairwise

import pytest
from structlog.testing import capture_logs

from bot.features.drafts.feature import ReplyDraft, draft_of
from bot.model.call import ModelReply
from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.errors import (
    BadToken,
    FloodWait,
    OutcomeUnknown,
    Refused,
    TelegramError,
    Unreachable,
)
from bot.turn.request import Request
from memory.behaviors.steps import ToolCall
from memory.message import Message
from memory.queue.mailbox import Entry
from memory.queue.open_turn import Run
from tests.bot.features.services import SENTENCES
from tests.bot.telegram import raw
from tests.lab.simulator.loop import VirtualLoop
from tests.quiet_chat import QuietChat

WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


class DraftChat(QuietChat):
    """Takes frames, unless it refuses them, and notes when they came."""

    def __init__(self, refusal: TelegramError | None = None) -> None:
        super().__init__()
        self.frames: list[tuple[float, str]] = []
        self._refusal = refusal

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        assert (to.chat_id, draft_id) == (7, 5)
        self.frames.append((round(asyncio.get_running_loop().time(), 2), part.text))
        if self._refusal:
            raise self._refusal
        return True


class Answer:
    """An answer that a model writes."""

    def __init__(self, draft: ReplyDraft) -> None:
        self._draft = draft
        self.reply = ModelReply("", (), "")

    def so_far(self) -> ModelReply:
        return self.reply

    async def write(self, *words: str, pause_s: float = 0.2) -> None:
        for word in words:
            self.reply = ModelReply(f"{self.reply.text}{word} ", (), "")
            self._draft.watch(self.so_far)
            await asyncio.sleep(pause_s)

    async def call(self, tool: str, runs_s: float) -> None:
        self.reply = ModelReply(self.reply.text, (ToolCall("a", tool, "{}"),), "tool_calls")
        self._draft.watch(self.so_far)
        await asyncio.sleep(runs_s)


def played(
    scene: Callable[[ReplyDraft], Awaitable[None]], chat: DraftChat, run: Run | None = None
) -> list[tuple[float, str]]:
    """Return the frames of a scene, with their times."""

    async def play() -> None:
        doing = lambda tools: Part(f"Using {min(tools)}…")  # noqa: E731
        draft = ReplyDraft(chat, Destination(7), 5, doing, run or Run())
        growing = asyncio.create_task(draft.keep_growing())
        await scene(draft)
        growing.cancel()
        await asyncio.gather(growing, return_exceptions=True)
        assert not draft.is_shown

    VirtualLoop.play(play())
    return chat.frames


def test_the_first_frame_comes_soon_and_the_others_at_an_even_pace() -> None:
    async def scene(draft: ReplyDraft) -> None:
        await asyncio.sleep(1)
        await Answer(draft).write(*WORDS)

    frames = played(scene, DraftChat())
    assert [at for at, _ in frames] == [1.15, 1.95, 2.75]
    assert [text.split()[-1] for _, text in frames] == ["one", "five", "nine"]


def test_while_a_tool_runs_its_line_stays_and_nothing_beside_the_call_is_kept() -> None:
    async def scene(draft: ReplyDraft) -> None:
        first, second = Answer(draft), Answer(draft)
        await first.write("Let", "me", "look")
        await first.call("search_memory", runs_s=50)
        await second.write("Found", "it", "here", pause_s=0.5)

    frames = played(scene, DraftChat())
    assert [text for _, text in frames[:2]] == ["Let", "Using search_memory…"]
    assert [text for _, text in frames[-2:]] == ["Found", "Found it"]
    assert "Let me" not in [text for _, text in frames[1:]]
    times = [at for at, _ in frames]
    assert max(later - at for at, later in pairwise(times)) < 21


def test_a_message_that_takes_the_draft_away_is_followed_at_once_by_a_frame() -> None:
    chat = DraftChat()

    async def scene(draft: ReplyDraft) -> None:
        answer = Answer(draft)
        await answer.write("Let", "me", "look", pause_s=0.1)
        await answer.call("search_memory", runs_s=5)
        chat.note_sent(Destination(7))
        await asyncio.sleep(1)
        await Answer(draft).write("Found", "it", "here", pause_s=0.1)
        chat.note_sent(Destination(7))
        await asyncio.sleep(0.01)

    *_, tool, again, _, last = played(scene, chat)
    assert (tool[1], again[1]) == ("Using search_memory…",) * 2
    assert again[0] - tool[0] > 4
    assert last == (6.6, "Found it here")
    assert chat._listeners == {}


def test_ten_seconds_at_sixty_tokens_give_eight_to_fourteen_frames() -> None:
    async def scene(draft: ReplyDraft) -> None:
        await Answer(draft).write(*["ab"] * 600, pause_s=1 / 60)

    frames = played(scene, DraftChat())
    assert 8 <= len(frames) <= 14
    assert frames[0][0] <= 0.3


def test_a_second_attempt_is_shown_once_it_is_longer_than_the_first() -> None:
    async def scene(draft: ReplyDraft) -> None:
        await Answer(draft).write(*WORDS[:5])
        await Answer(draft).write(*WORDS, pause_s=0.3)

    lengths = [len(text) for _, text in played(scene, DraftChat())]
    assert lengths == sorted(lengths)
    assert lengths[-1] > len(" ".join(WORDS[:5]))


@pytest.mark.parametrize(
    "refusal",
    [Refused("other"), BadToken(), FloodWait(1), OutcomeUnknown("500"), Unreachable()],
    ids=lambda refusal: type(refusal).__name__,
)
def test_after_a_failed_frame_comes_no_other_and_only_one_in_doubt_may_be_shown(
    refusal: TelegramError,
) -> None:
    run = Run()

    async def scene(draft: ReplyDraft) -> None:
        await Answer(draft).write(*WORDS)

    with capture_logs() as logs:
        assert len(played(scene, DraftChat(refusal), run)) == 1
    assert logs == []
    assert (run.shown is None) is not isinstance(refusal, OutcomeUnknown)


def test_a_run_knows_what_is_shown_and_shows_nothing_once_it_ends() -> None:
    run, seen = Run(), list[str | None]()

    async def scene(draft: ReplyDraft) -> None:
        answer = Answer(draft)
        seen.append(run.shown)
        await answer.call("search_memory", 1)
        seen.append(run.shown)
        answer.reply = ModelReply("", (), "")
        growing = Answer(draft)
        await growing.write("**one**", "two", "three", pause_s=1)
        seen.append(run.shown)
        run.is_ending = True
        await growing.write("four", "five", pause_s=1)
        seen.append(run.shown)

    frames = played(scene, DraftChat(), run)
    assert seen == [None, "", "**one** two three", "**one** two three"]
    assert frames[-1][1] == "one two three"


def test_a_draft_has_the_number_of_the_waiting_message_also_after_an_edit() -> None:
    """By this number a press of Stop finds the turn."""
    edited = replace(raw.inbound(raw.message("new words")), update_id=9, edited_at=60)
    message = Message(0, 0, "user", "new words", 1.0, 7, "Anna", (11,), 1)
    request = Request((edited,), message, (message,), (Entry(5, 7, is_alone=False, body=b""),))
    draft = draft_of(DraftChat(), SENTENCES, request)
    assert draft
    assert draft.draft_id == 5
    assert draft.doing({"search_memory"}).text == SENTENCES.text("de", "draft.searching")
