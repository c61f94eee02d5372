"""The bot's parts with a meter around them; the parts themselves know nothing of it."""

from collections.abc import Sequence

from bot.metrics.metrics import Metrics
from bot.telegram.updates import IncomingMessage
from bot.turn.outbox import Outbox
from bot.turn.runner import Answerer
from bot.turn.worker import Runner
from memory.message import Message
from memory.queue.open_turn import Committed, OpenTurn
from memory.scopes.history import ChatHistory


class MeteredAnswerer:
    """Measures how long answering takes: recall, model and tools."""

    def __init__(self, answerer: Answerer, metrics: Metrics) -> None:
        self._answerer = answerer
        self._metrics = metrics

    async def answer(
        self, mail: Sequence[IncomingMessage], words: Message, history: ChatHistory
    ) -> Outbox:
        """Return the reply to one person's messages."""
        with self._metrics.timed("answer"):
            return await self._answerer.answer(mail, words, history)

    def apologise(self, mail: Sequence[IncomingMessage], reference: str) -> Outbox:
        """Return the reply to messages that could not be answered."""
        self._metrics.turns.labels("apologised").inc()
        return self._answerer.apologise(mail, reference)


class MeteredRunner:
    """Counts turns and measures them whole."""

    def __init__(self, runner: Runner, metrics: Metrics) -> None:
        self._runner = runner
        self._metrics = metrics

    async def run(self, turn: OpenTurn) -> Committed:
        """Answer, deliver and commit; raise `LeaseLost`, `Parked` or `StoreError`."""
        outcome = "closed"
        try:
            with self._metrics.timed("turn"):
                return await self._runner.run(turn)
        except Exception as error:
            outcome = type(error).__name__
            raise
        finally:
            self._metrics.turns.labels(outcome).inc()
