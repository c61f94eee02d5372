"""Files that people send, as the steps of features read them, without a bot around."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace

from bot.feature import Feature, Services
from bot.reply.parts import Part
from bot.telegram.errors import RefusalReason, Refused
from bot.telegram.updates import IncomingMessage, Sender, SentFile
from bot.turn.answer import FileFetcher, FileSteps
from bot.turn.outbox import Outbox
from bot.turn.permits import Permits
from bot.turn.request import Request
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.store.keys import Scope
from tests.bot.features.services import services_of
from tests.memory.turns import HERE
from tests.quiet_chat import QuietChat
from tests.settings import Settings

ANN = Sender(7, "Ann")
MAX_BYTES = 2**20


class Files(QuietChat):
    """Downloads `content`, or is refused; calls `meanwhile` first, as if the download took long."""

    def __init__(self) -> None:
        super().__init__()
        self.content = b"The whale is blue."
        self.refusal: RefusalReason | None = None
        self.meanwhile: Callable[[], Awaitable[object]] | None = None
        self.requested: list[tuple[str, int]] = []

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        self.requested.append((file_id, max_bytes))
        if self.meanwhile:
            await self.meanwhile()
        if self.refusal:
            raise Refused(self.refusal)
        return self.content


class Filing:
    """Features that read files, and the conversations that they asked to learn from."""

    def __init__(self, memory: Memory, features: Sequence[Callable[[Services], Feature]]) -> None:
        self.files = Files()
        self.learned: list[Scope] = []
        services = services_of(memory, Settings(), self.files)
        files = FileFetcher(self.files, memory.scopes, MAX_BYTES)
        self.services = replace(services, files=files, learn=self.learned.append)
        self.features = self.services.features
        self.features += [each(self.services) for each in features]
        self._steps = FileSteps(
            [step for each in self.features for step in each.file_steps.items()],
            Permits(1, memory.mailbox.wake),
            files,
            services.at_work,
            services.sentences,
        )

    def sent(self, name: str, text: str = "", nbytes: int = 18) -> IncomingMessage:
        """Return the message of a file that was not fetched yet."""
        file = SentFile("f1", name, "", nbytes)
        return IncomingMessage(1, 7, 0, False, 11, 1_790_000_000, ANN, "document", text, file=file)  # noqa: FBT003

    async def take(self, sent: IncomingMessage) -> tuple[Part, ...]:
        """Return what is said about a file, or below the answer of the model to its caption."""
        history = await ChatHistory.read(self.services.memory.histories, HERE)
        message = Message(0, 0, "user", sent.text, sent.sent_at, ANN.id, ANN.name)
        request = Request((sent,), message, (message,))
        answer = await self._steps.answer(request, history)
        below = map(Part, request.run.media_notes)
        return answer.parts if isinstance(answer, Outbox) else tuple(below)
