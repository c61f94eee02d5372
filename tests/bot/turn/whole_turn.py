"""One message that is answered by a worker with all its parts, from the mailbox to the chat."""

import asyncio

from bot.assistant import assistant_of, behaviors_of, turn_worker
from bot.model.models import open_models
from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.updates import to_bytes
from memory.memory import Memory
from memory.queue.mailbox import Entry
from memory.text.tokens import TokenCounter
from tests.bot.features.services import services_of
from tests.bot.telegram import raw
from tests.memory.turns import ANN, HERE
from tests.quiet_chat import QuietChat, no_command
from tests.settings import Settings


class SignallingChat(QuietChat):
    """Sets an event when a part is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.answered = asyncio.Event()

    async def send(self, to: Destination, part: Part, timeout_s: float = 15.0) -> int:
        self.answered.set()
        return await super().send(to, part, timeout_s)


async def answer_hello(settings: Settings, memory: Memory, tokens: TokenCounter) -> list[Part]:
    """Return what is sent when Ann says hello."""
    async with open_models(settings) as models:
        behaviors = behaviors_of(settings, memory, models.internal)
        assistant = assistant_of(settings, tokens, models.chats, behaviors)
        chat = SignallingChat()
        services = services_of(memory, settings, chat, models=models)
        worker = turn_worker(services, assistant, no_command, lambda _: None)
        working = asyncio.create_task(worker.run())
        said = to_bytes(raw.inbound(raw.message("hello")))
        await memory.mailbox.put(HERE, Entry(1, ANN, is_alone=False, body=said))
        async with asyncio.timeout(60):
            await chat.answered.wait()
        await worker.stop(grace_s=5)
        working.cancel()
    return [part for _, part in chat.sent]
