"""An in-memory Telegram: the messages of its chats, and a client for each process."""

from collections.abc import Callable
from dataclasses import dataclass

from bot.reply.parts import Part
from bot.telegram.chat import Destination
from bot.telegram.errors import Blocked, FloodWait, OutcomeUnknown, Unreachable
from tests.lab.simulator import markers
from tests.lab.simulator.audit import Auditor
from tests.lab.simulator.chance import Chance
from tests.lab.simulator.loop import Died, Process, VirtualLoop
from tests.lab.simulator.records import SentPart
from tests.lab.simulator.turn import SIGN, token_of_reminder, token_of_turn
from tests.quiet_chat import QuietChat


@dataclass(slots=True)
class Posted:
    """A message of the bot in a chat."""

    id: int
    chat_id: int
    part: Part
    record: SentPart | None
    is_deleted: bool = False


class SimulatedTelegram:
    """The messages in all chats; `on_posted` is called with each new message of the bot."""

    def __init__(self, loop: VirtualLoop, chance: Chance, auditor: Auditor) -> None:
        self.loop = loop
        self.chance = chance
        self.auditor = auditor
        self.posted: dict[int, Posted] = {}
        self.on_posted: Callable[[Posted], None] = lambda _: None
        self._last_id = 1000

    def next_id(self) -> int:
        """Return a message id that was never used."""
        self._last_id += 1
        return self._last_id

    def post(
        self, chat_id: int, part: Part, token: str, sender: Process, *, is_answered: bool = True
    ) -> Posted:
        """Let a message appear; `is_answered` says whether its sender learns of it."""
        message_id = self.next_id()
        if part.text.startswith(SIGN):
            self.auditor.reminder_sent(part.text, token)
        record = self.auditor.sent(
            message_id, part.text, token, sender.name, is_answered=is_answered
        )
        posted = Posted(message_id, chat_id, part, record)
        self.posted[message_id] = posted
        self.on_posted(posted)
        return posted


class TelegramClient(QuietChat):
    """One process's client for everything that the bot does with Telegram."""

    def __init__(self, telegram: SimulatedTelegram, process: Process) -> None:
        super().__init__()
        self._telegram = telegram
        self._process = process
        self._chance = telegram.chance

    async def send(self, to: Destination, part: Part, timeout_s: float = 15.0) -> int:
        """Send one part, or fail as Telegram may."""
        chat_id = to.chat_id
        process, token = self._process, token_of_turn() or token_of_reminder()
        fate = self._chance.fate("send")
        process.check()
        if part.text.startswith(SIGN):
            self._telegram.auditor.reminder_sending(part.text, token)
        self._telegram.auditor.sending(part.text, token)
        if fate == "crash":
            process.crash()
            raise Died
        if fate == "pause":
            process.pause(self._chance.pause())
        if fate == "late":
            when = self._chance.random.uniform(0, 5)
            self._telegram.loop.call_later(when, self._arrive, chat_id, part, token)
        await process.travel(min(self._chance.latency(), timeout_s))
        if fate in _TROUBLING:
            self._trouble(part, fate)
        self._refuse(fate)
        is_answered = fate != "unknown sent"
        posted = self._telegram.post(chat_id, part, token, process, is_answered=is_answered)
        if fate == "crash after":
            process.crash()
            raise Died
        if not is_answered:
            raise OutcomeUnknown("simulated")
        await process.travel(min(self._chance.latency(), timeout_s))
        return posted.id

    def _refuse(self, fate: str) -> None:
        match fate:
            case "flood":
                raise FloodWait(self._chance.random.uniform(0.1, 1.5))
            case "long flood":
                raise FloodWait(self._chance.random.uniform(2.5, 5))
            case "unreachable":
                raise Unreachable("simulated")
            case "blocked":
                raise Blocked("simulated")
            case "unknown" | "late":
                raise OutcomeUnknown("simulated")

    async def delete(self, chat_id: int, message_id: int) -> None:
        """Delete a message of the bot; this never fails."""
        del chat_id
        await self._process.travel(self._chance.latency())
        posted = self._telegram.posted[message_id]
        posted.is_deleted = True
        if posted.record is not None:
            posted.record.is_deleted = True
        await self._process.travel(self._chance.latency())

    async def edit(
        self, chat_id: int, message_id: int, part: Part, timeout_s: float = 15.0
    ) -> None:
        """Replace a message of the bot, without its buttons."""
        del chat_id, timeout_s
        auditor, token = self._telegram.auditor, token_of_turn()
        self._process.check()
        if markers.part_name(part.text):
            auditor.sending(part.text, token)
        await self._process.travel(self._chance.latency())
        posted = self._telegram.posted[message_id]
        posted.part = part
        posted.record = (
            auditor.edited(message_id, part.text, token, self._process.name) or posted.record
        )
        await self._process.travel(self._chance.latency())

    async def answer_button(self, callback_id: str, text: str = "") -> None:
        """End the progress mark on a button."""
        del callback_id, text
        await self._process.travel(self._chance.latency())

    async def is_group_admin(self, chat_id: int, user_id: int) -> bool:
        """Return true: everybody is an admin of the group."""
        del chat_id, user_id
        await self._process.travel(self._chance.latency())
        return True

    async def show_typing(self, to: Destination) -> None:
        del to
        self._process.check()

    def _arrive(self, chat_id: int, part: Part, token: str) -> None:
        """Let a message appear after its sender has got an error."""
        self._telegram.post(chat_id, part, token, self._process, is_answered=False)

    def _trouble(self, part: Part, fate: str) -> None:
        name, records = markers.part_name(part.text), self._telegram.auditor.records
        if part.text.startswith(SIGN):
            self._telegram.auditor.reminder_troubled(token_of_reminder())
        if name is None:
            return
        records.troubled.add((name.reply, name.number))
        if fate == "blocked":
            records.undeliverable.add(name.reply)
            records.troubled.update((name.reply, part) for part in range(name.number, name.of + 1))


_TROUBLING = frozenset({"blocked", "unknown", "unknown sent", "late"})
"""After these faults a part may be missing in the chat."""
