"""A chat for tests: takes everything, keeps what was sent, and knows no administrator."""

import asyncio
from collections.abc import AsyncIterator

from bot.commands.bot_command import Answer
from bot.reply.parts import Part
from bot.telegram.chat import Destination, SendListeners
from bot.telegram.errors import FloodWait, TelegramError
from bot.telegram.updates import IncomingMessage
from memory.behaviors.tool_output import OutgoingFile
from memory.store.keys import Scope


class QuietChat(SendListeners):
    """Implements `Chat` in memory; a test overrides the method that it is about.

    A method named in `fails` raises this error once. `admins` administrate every group.
    """

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[Destination, Part]] = []
        self.edited: list[tuple[int, int, Part]] = []
        self.deleted: list[tuple[int, int]] = []
        self.button_answers: list[str] = []
        self.left: list[int] = []
        self.names: list[tuple[int, int, str]] = []
        self.admins: set[int] = set()
        self.permit_waits_s: list[float] = []
        self.permits: list[tuple[int, float]] = []  # the chats of permits, and the bound of each
        self.fails: dict[str, TelegramError] = {}
        self.has_sent = asyncio.Event()

    @property
    def texts(self) -> list[str]:
        return [part.text for _, part in self.sent]

    def _may_fail(self, method: str) -> None:
        if error := self.fails.pop(method, None):
            raise error

    async def waits(self, chat_id: int, max_wait_s: float = 20) -> AsyncIterator[float]:
        """Yield the waits of the test; without any there is no rate limit."""
        self.permits.append((chat_id, max_wait_s))
        for wait_s in self.permit_waits_s:
            if wait_s > max_wait_s:
                raise FloodWait(wait_s)
            yield wait_s

    async def send(self, to: Destination, part: Part, timeout_s: float = 15.0) -> int:
        """Keep the part; return ids from 100 on."""
        del timeout_s
        self._may_fail("send")
        self.sent.append((to, part))
        self.has_sent.set()
        return 99 + len(self.sent)

    def takes_rich(self, chat_id: int) -> bool:
        del chat_id
        return False

    def takes_voice(self, chat_id: int) -> bool:
        del chat_id
        return True

    async def edit(self, chat_id: int, message_id: int, part: Part, timeout_s: float = 15) -> None:
        del timeout_s
        self._may_fail("edit")
        self.edited.append((chat_id, message_id, part))

    async def delete(self, chat_id: int, message_id: int) -> None:
        self.deleted.append((chat_id, message_id))

    async def show_typing(self, to: Destination) -> None:
        """Show nothing."""

    async def show_draft(self, to: Destination, draft_id: int, part: Part) -> bool:
        del to, draft_id, part
        return False

    async def react(self, chat_id: int, message_id: int, emoji: str) -> bool:
        del chat_id, message_id, emoji
        return True

    async def name_topic(self, chat_id: int, topic_id: int, name: str) -> None:
        self.names.append((chat_id, topic_id, name))
        self._may_fail("name_topic")

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        del callback_id
        self.button_answers.append(text)

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        del chat_id
        return user_id in self.admins

    async def leave(self, chat_id: int) -> None:
        self.left.append(chat_id)

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        raise NotImplementedError


async def no_export(conversation: Scope) -> OutgoingFile:
    """Stand for the maker of export files where nothing is exported."""
    raise NotImplementedError(conversation.tag)


async def no_command(_: IncomingMessage, __: Scope) -> Answer:
    """Answer each command as one that does not exist."""
    return Answer((Part("No such command."),))
