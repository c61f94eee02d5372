"""`/retry`, and the button under an apology: a question is asked once more.

Both wait in the mailbox; `bot.turn.revision` carries them out in the conversation's order.
"""

from dataclasses import replace

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.later_presses import message_of, put_press
from bot.commands.sentences import Sentences
from bot.reply.parts import Part
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.erasure.confirmations import Confirmations
from memory.queue.mailbox import Mailbox
from memory.store.keys import Scope


class RetryCommand:
    """Has the newest question, or the one under an apology, answered again."""

    def __init__(
        self, confirmations: Confirmations, access: Access, mailbox: Mailbox, sentences: Sentences
    ) -> None:
        self._confirmations = confirmations
        self._access = access
        self._mailbox = mailbox
        self._sentences = sentences

    async def nothing_to_retry(self, asked: IncomingMessage, _: Scope) -> Answer:
        """Say that there is no question."""
        return Answer(self._sentences.say(asked.sender.language, "retry.nothing"))

    async def press(self, pressed: ButtonPress, here: Scope, nonce: str) -> tuple[Part, ...]:
        """Put the question into its place in the conversation; the reply replaces the apology."""
        about = await self._confirmations.check(here, nonce, "again", None)
        if not about:
            return ()
        message_id, asker = map(int, about.split(","))
        await self._access.check(pressed, [asker])
        again = replace(message_of(pressed), kind="again", text=nonce, replied_to=message_id)
        await put_press(self._mailbox, here, again)
        return ()
