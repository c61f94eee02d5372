"""Shows a reply while the model writes it, in frames of one draft.

A frame is a beginning of the reply, or a line that says what the tools do. Errors of a draft do not
reach the turn. `Run.shown` is the text that the person may have seen: if they stop the turn, it is
the reply.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

import structlog

from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.drafts.growing_reply import GrowingReply
from bot.model.call import SoFar
from bot.reply.parts import Part
from bot.telegram.chat import Chat, Destination
from bot.telegram.errors import OutcomeUnknown, TelegramError
from bot.turn.request import Request
from memory.queue.open_turn import Run

log = structlog.get_logger(__name__)

_FIRST_S = 0.15  # an answer that is complete sooner needs no draft
_LOOK_S = 0.05
_EVERY_S = 0.8
_REPEAT_S = 20.0
"""Telegram removes a draft after 30 seconds without a frame.

It also removes one at each message of ours to the same place. If this process sent the message, the
next frame follows at once; if another process did, it comes when the text has grown, or after this.
"""
_MAX_CHARS = 3800  # what is longer comes with the reply, which may be several messages or a file
_SEARCHES = frozenset({"search_memory", "search_documents"})


def feature(services: Services) -> Feature:
    """Return the feature."""
    return Feature(name="drafts", draft_of=partial(draft_of, services.chat, services.sentences))


@dataclass(slots=True, repr=False, eq=False)
class ReplyDraft:
    """One draft. It belongs to one run of a turn: it tells the run what the person sees."""

    chat: Chat
    to: Destination
    draft_id: int
    doing: Callable[[set[str]], Part]  # returns the line to show for the names of called tools
    run: Run
    is_shown: bool = False  # the person sees the draft, so that "typing" is not needed
    _begun: asyncio.Event = field(default_factory=asyncio.Event)
    _gone: asyncio.Event = field(default_factory=asyncio.Event)
    _answers: list[SoFar] = field(default_factory=list)
    _reply: GrowingReply = field(default_factory=GrowingReply)
    _tools: set[str] = field(default_factory=set)
    _frame: Part = field(default_factory=lambda: Part(""))

    def watch(self, so_far: SoFar) -> None:
        """Add an answer that grows; a second model or a second attempt writes another one."""
        if so_far not in self._answers:
            self._answers.append(so_far)
        if not self._begun.is_set() and self._written():
            self._begun.set()

    async def keep_growing(self) -> None:
        """Show frames until cancelled, or until a call to Telegram fails."""
        try:
            await self._begun.wait()
            await asyncio.sleep(_FIRST_S)
            with self.chat.after_each_send(self.to, self._gone.set):
                await self._keep_growing()
        except TelegramError:
            return
        except Exception:  # the outer fence: a draft never harms a reply
            log.exception("draft not shown")
        finally:
            self.is_shown = False

    async def _keep_growing(self) -> None:
        now_s = asyncio.get_running_loop().time
        shown, shown_at = Part(""), 0.0
        while True:
            frame, now = await self._next_frame(), now_s()
            is_fading = now - shown_at >= _REPEAT_S or self._gone.is_set()
            if frame == shown and not (self.is_shown and is_fading):
                await asyncio.sleep(_LOOK_S)
                continue
            self._gone.clear()
            self.is_shown = await self._show(frame)
            shown, shown_at = frame if self.is_shown else shown, now
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, now + _EVERY_S - now_s())):
                    await self._gone.wait()

    async def _show(self, frame: Part) -> bool:
        """Show a frame; return false if it was left out.

        The run is told before: a frame may arrive although its call is cancelled.
        """
        run, before = self.run, self.run.shown
        if run.is_ending:
            return False
        run.shown = self._reply.source[len(run.before) :]
        try:
            is_shown = await self.chat.show_draft(self.to, self.draft_id, frame)
        except OutcomeUnknown:
            raise
        except TelegramError:
            run.shown = before
            raise
        if not is_shown:
            run.shown = before
        return is_shown

    async def _next_frame(self) -> Part:
        """Return the frame to show now; text gives way only to longer text, or to a tool call."""
        written = self._written()
        if isinstance(written, str):
            self._tools = set()
            frame = await self._reply.frame((self.run.before + written)[:_MAX_CHARS])
            self._frame = frame if frame.text else self._frame
        elif written != self._tools:
            self._reply, self._tools = GrowingReply(), written
            self._frame = self.doing(written)
        return self._frame

    def _written(self) -> str | set[str]:
        """Return the longest text after the newest answer that called tools.

        Without such a text, return the names of the tools it called; without a call, "".
        """
        replies = [so_far() for so_far in self._answers]
        calling = [at for at, reply in enumerate(replies) if reply.tool_calls]
        if calling:
            # Text of earlier answers, and text beside a call, is no part of the reply.
            del self._answers[: calling[-1]]
            replies = replies[calling[-1] :]
        texts = [reply.text for reply in replies if not reply.tool_calls]
        tools = {call.name for reply in replies for call in reply.tool_calls}
        return max(texts, key=len, default="") or tools or ""


def draft_of(chat: Chat, sentences: Sentences, request: Request) -> ReplyDraft | None:
    """Return the draft of a turn; None in a group, where Telegram takes none, and for a task.

    A reply that is edited into the former one has none: Telegram shows no draft of an edit.
    """
    is_edited = request.replaces and not request.last.is_retried
    if request.last.is_group or request.last.is_task or is_edited:
        return None

    def doing(tools: set[str]) -> Part:
        key = "draft.searching" if tools & _SEARCHES else "draft.working"
        return sentences.say(request.language, key)[0]

    # The first entry names the draft, as it names the turn (see `stop.lua`); an edit keeps its id.
    # The mask keeps the id within 31 bits; Telegram refuses zero.
    draft_id = request.entries[0].update_id & 0x7FFFFFFF or 1
    return ReplyDraft(chat, request.to, draft_id, doing, request.run)
