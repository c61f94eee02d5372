"""The bot's parts with a meter around them; the parts themselves know nothing of it."""

from collections.abc import Mapping, Sequence
from typing import Literal

from bot.metrics.metrics import Metrics
from bot.metrics.usage_counter import ModelMeter
from bot.model.call import NO_LABELS, CallLabels, ChatModel, ModelReply, PromptMessage
from bot.model.model_errors import ModelError
from bot.telegram.updates import IncomingMessage
from bot.turn.outbox import Outbox
from bot.turn.runner import Answerer
from bot.turn.worker import Runner
from memory.behaviors.tool import ToolDefinition
from memory.message import Message
from memory.queue.turns import Committed, OpenTurn
from memory.scopes.history import ChatHistory
from memory.search.embeddings import Embedder, Vectors
from memory.text.internal_model import InternalModel
from memory.text.shape import Shape


class MeteredChatModel:
    """Counts answers, their time and tokens."""

    def __init__(self, model: ChatModel, meter: ModelMeter) -> None:
        self._model = model
        self._meter = meter

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,
    ) -> ModelReply:
        """Return one complete answer; raise `ModelError`."""
        try:
            with self._meter.call():
                reply = await self._model.complete(
                    messages, tools, tool_choice=tool_choice, labels=labels
                )
        except ModelError as error:
            self._meter.used(error.usage)
            raise
        self._meter.used(reply.usage, is_last=not reply.tool_calls)
        return reply


class MeteredInternalModel:
    """Counts internal calls and their time; their tokens are told by whoever makes them."""

    def __init__(self, model: InternalModel, meter: ModelMeter) -> None:
        self._model = model
        self._meter = meter

    async def fill(self, instructions: str, content: str, shape: Shape) -> Mapping[str, object]:
        """Return the raw parts of a structured answer; raise `InternalModelUnavailable`."""
        with self._meter.call():
            return await self._model.fill(instructions, content, shape)

    async def write(self, instructions: str, content: str, max_tokens: int) -> str:
        """Return prose; raise `InternalModelUnavailable`."""
        with self._meter.call():
            return await self._model.write(instructions, content, max_tokens)


class MeteredEmbedder:
    """Counts requests for vectors and their time; their tokens are told by whoever makes them."""

    def __init__(self, embedder: Embedder, meter: ModelMeter) -> None:
        self._embedder = embedder
        self._meter = meter

    @property
    def fingerprint(self) -> str:
        """Name model and dimensions."""
        return self._embedder.fingerprint

    async def embed(self, texts: Sequence[str]) -> Vectors:
        """Return `(len(texts), dimensions)` unit rows; raise `EmbeddingsUnavailable`."""
        with self._meter.call():
            return await self._embedder.embed(texts)


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
