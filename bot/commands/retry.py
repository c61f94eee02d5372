"""`/retry`, and the buttons under apologies: a question is asked once more.

All wait in the mailbox. `bot.turn.revision` carries out the first two in the conversation's order.
The messages of a turn that was given up return to the mailbox as they were.
"""

from dataclasses import replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer, BotCommand, ShownOnTop
from bot.commands.immediate import message_of, put_press
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.memory import Memory
from memory.store.keys import Scope


class RetryCommand:
    """Has the newest question, or the one under an apology, answered again."""

    def __init__(self, memory: Memory, access: Access, sentences: Sentences) -> None:
        self._questions = memory.questions
        self._letters = memory.dead_letters
        self._mailbox = memory.mailbox
        self._access = access
        self._sentences = sentences
        buttons = {"again": self._press, "letter": self._press_letter}
        self.command = BotCommand("retry", self.answer, buttons=buttons)

    async def answer(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say that there is no question."""
        return Answer(self._sentences.say(asked.sender.language, "retry.nothing"))

    async def _press(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the question into its place in the conversation; the reply replaces the apology."""
        if message_id := await self._checked(pressed, here, nonce, "again"):
            again = replace(message_of(pressed), kind="again", text=nonce)
            await put_press(self._mailbox, here, replace(again, replied_to=int(message_id)))
        return ()

    async def _press_letter(
        self, pressed: ButtonPress, here: Scope, nonce: str
    ) -> tuple[Part, ...]:
        """Put the messages of a turn that was given up back into the mailbox, once."""
        letter = await self._checked(pressed, here, nonce, "letter")
        if not await self._letters.retry(here, letter):
            raise ShownOnTop("retry.nothing")
        return self._sentences.say(pressed.sender.language, "retry.begun")

    async def _checked(self, pressed: ButtonPress, here: Scope, nonce: str, kind: str) -> str:
        """Return what is asked again; "" if it was already. Its asker and admins may press."""
        about = await self._questions.check(here, nonce, kind, None)
        again, _, asker = about.partition(",")
        if again:
            await self._access.check(pressed, [int(asker)])
        return again
