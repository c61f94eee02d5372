"""What follows a turn: observers hear how it ended, learning begins, the behaviors are told."""

import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager

from bot.commands.access import call_context_of
from bot.turn.observers import Observer, Step, StepBegan, TurnBegan, TurnEnded
from bot.turn.outbox import Outbox
from bot.turn.request import Request
from memory.behaviors.behavior import AIContextBehavior
from memory.message import Message
from memory.queue.open_turn import OpenTurn
from memory.store.errors import LeaseLost
from memory.store.keys import Scope


class AfterTurn:
    """`learn` begins to learn from a conversation, in the background, and returns at once."""

    def __init__(
        self, behaviors: AIContextBehavior, learn: Callable[[Scope], None], observe: Observer
    ) -> None:
        self._behaviors = behaviors
        self._learn = learn
        self._observe = observe

    @contextmanager
    def observed(self, opened: OpenTurn) -> Iterator[Callable[[Step], None]]:
        """Tell observers that a turn begins, how long the block took and how it ended.

        The block calls what it is given whenever it begins a step after the first one.
        """
        self._observe(TurnBegan(opened))
        began, outcome = time.monotonic(), "closed"

        def begin(step: Step) -> None:
            self._observe(StepBegan(step))

        begin("answer")
        try:
            yield begin
        except BaseException as error:
            outcome = type(error).__name__
            raise
        finally:
            self._observe(TurnEnded(outcome, time.monotonic() - began))

    @asynccontextmanager
    async def suspended(self, request: Request, conversation: Scope) -> AsyncIterator[None]:
        """Call `on_suspend` if the block fails or parks the turn; otherwise `closed` calls it.

        It is not called if the lease is lost, because another process may run the turn already.
        """
        try:
            yield
        except LeaseLost:
            raise
        except Exception:
            if not request.is_off_record and request.last.kind != "command":
                await self._behaviors.on_suspend(call_context_of(request.last, conversation))
            raise

    async def closed(
        self,
        request: Request,
        conversation: Scope,
        outbox: Outbox,
        messages: Sequence[Message],
    ) -> None:
        """Learn from a committed turn, and call the hooks of its reply and of its end.

        A command that ends the session is a turn without messages: it resumes and ends here. With
        words behind the command its messages belong to the next session.
        """
        if request.is_off_record or not (messages or outbox.ends_session):
            return
        self._learn(conversation)
        call_context = call_context_of(request.last, conversation)
        if outbox.ends_session:
            if not messages:
                await self._behaviors.on_resume(call_context)
            await self._behaviors.on_conversation_checkpoint(call_context)
        for message in messages:
            if message.role == "assistant":
                await self._behaviors.on_new_message(call_context, message)
        await self._behaviors.on_suspend(call_context)
