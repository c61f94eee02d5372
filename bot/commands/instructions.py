"""`/instructions`: shows, sets and removes how the bot should answer in one conversation."""

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.telegram.updates import IncomingMessage
from memory.behaviors.chat_instructions import MAX_CHARS, ChatInstructions
from memory.store.keys import Scope
from memory.text.untrusted_text import visible


class InstructionsCommand:
    """Everybody may read the instructions; in a group only administrators change them."""

    def __init__(self, stored: ChatInstructions, access: Access, sentences: Sentences) -> None:
        self._stored = stored
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        text = visible(asked.text).strip()
        if not text:
            text = await self._stored.read(conversation)
            return self._say(asked, "shown" if text else "none", text=text)
        if refusal := await self._access.refusal(asked, "instructions"):
            return refusal
        if len(text) > MAX_CHARS:
            return self._say(asked, "too_long", chars=len(text), max=MAX_CHARS)
        is_off = text.lower() == "off"
        await self._stored.store(conversation, "" if is_off else text, asked.sender.id)
        return self._say(asked, "removed" if is_off else "set")

    def _say(self, asked: IncomingMessage, key: str, **values: object) -> Answer:
        return Answer(self._sentences.say(asked.sender.language, f"instructions.{key}", **values))
