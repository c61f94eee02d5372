"""`/clear_memory`: operators erase a chat, a person or everything, after a question."""

from dataclasses import dataclass

from bot.commands.bot_command import Answer
from bot.commands.receipts import Receipts
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import Confirmations, NotConfirmed
from memory.erasure.jobs import JobKind
from memory.store.keys import Scope

_JOBS: dict[str, JobKind] = {"user": "forget", "chat": "chat", "all": "all"}


@dataclass(frozen=True, slots=True)
class ErasureTarget:
    """What is to be erased: everything, a chat with all its topics, or a person."""

    kind: str
    id: int = 0

    @classmethod
    def of(cls, arguments: str, here: int) -> "ErasureTarget | None":
        """Read the command's arguments, or a button's; `None` if they name nothing."""
        match arguments.split():
            case []:
                return cls("chat", here)
            case ["all"]:
                return cls("all")
            case ["chat" | "user" as kind, number] if is_number(number):
                return cls(kind, int(number))
            case [number] if is_number(number):
                return cls("chat", int(number))
            case _:
                return None

    def __str__(self) -> str:
        """Return the form for a sentence and for a button."""
        return self.kind if self.kind == "all" else f"{self.kind} {self.id}"


class ClearMemoryCommand:
    """Asks, and starts the erasure when the question is confirmed."""

    def __init__(
        self, confirmations: Confirmations, receipts: Receipts, sentences: Sentences
    ) -> None:
        self._confirmations = confirmations
        self._receipts = receipts
        self._sentences = sentences

    async def ask(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Ask before a chat, a person or everything is erased."""
        language = asked.sender.language
        target = ErasureTarget.of(asked.text, asked.chat_id)
        if target is None:
            return Answer(self._sentences.say(language, "admin.clear_memory_usage"))
        nonce = await self._confirmations.ask(conversation, "admin", asked.sender.id, str(target))
        action = f"admin:{nonce}:{target}"
        return Answer(
            self._sentences.ask(language, "admin.clear_memory_ask", action, target=target)
        )

    async def start(self, pressed: ButtonPress, here: Scope, rest: str) -> tuple[Part, ...]:
        """Start the job; the receipt follows when it is done."""
        nonce, _, detail = rest.partition(":")
        about = await self._confirmations.check(here, nonce, "admin", pressed.sender.id)
        # After the job has run, the question is gone; the job itself still knows its target.
        target = ErasureTarget.of(about or detail, pressed.chat_id)
        if target is None:
            raise NotConfirmed("unknown")
        kind = _JOBS[target.kind]
        return await self._receipts.start(pressed, nonce, kind, target.id, "admin.clear_memory_")


def is_number(text: str) -> bool:
    """Say whether a text is the id of a chat or a person."""
    return text.removeprefix("-").isdecimal()
