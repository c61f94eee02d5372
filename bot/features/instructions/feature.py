"""What instructions add to the bot."""

from collections.abc import Mapping
from hashlib import blake2b

from bot.commands.access import Access
from bot.commands.bot_command import ANYTHING, Answer, BotCommand
from bot.commands.sentences import Sentences
from bot.feature import Feature, Services
from bot.features.instructions.behavior import MAX_CHARS, ChatInstructions, instructions_in
from bot.reply.parts import Button, Part, with_buttons
from bot.reply.utf16 import shortened
from bot.telegram.updates import ButtonPress, IncomingMessage
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope
from memory.text.untrusted_text import visible

_SHOWN_UNITS = 700


def feature(services: Services) -> Feature:
    """Return the feature."""
    stored, sentences = ChatInstructions(services.memory.scopes), services.sentences
    command = InstructionsCommand(stored, services.access, sentences)

    def shown(language: str, here: ScopeMemory, _: ScopeMemory) -> str:
        text = shortened(instructions_in(here), _SHOWN_UNITS)
        return sentences.text(language, "instructions.shown", text=text) if text else ""

    async def exported(conversation: Scope, _: ScopeMemory) -> Mapping[str, object]:
        return {"instructions": await stored.read(conversation) or None}

    return Feature(
        name="instructions",
        commands=(
            BotCommand(
                "instructions",
                command.answer,
                buttons={command.verb: command.remove},
                words=("off",),
                takes=ANYTHING,
                uses_memory=True,
            ),
        ),
        behaviors=(stored,),
        memory_lines=(shown,),
        exports=(exported,),
    )


class InstructionsCommand:
    """Everybody may read the instructions; in a group only administrators change them."""

    verb = "instructions"

    def __init__(self, stored: ChatInstructions, access: Access, sentences: Sentences) -> None:
        self._stored = stored
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Answer the command."""
        text, language = visible(asked.text).strip(), asked.sender.language
        if not text:
            return Answer(await self._shown(language, conversation))
        if refusal := await self._access.refusal(asked, "instructions"):
            return refusal
        if len(text) > MAX_CHARS:
            return Answer(self._say(language, "too_long", chars=len(text), max=MAX_CHARS))
        is_off = text.lower() == "off"
        await self._stored.store(conversation, "" if is_off else text, asked.sender.id)
        return Answer(self._say(language, "removed" if is_off else "set"))

    async def remove(
        self, pressed: ButtonPress, conversation: Scope, digest: str
    ) -> tuple[Part, ...]:
        """Remove the instructions that were shown with the button; show those set since then."""
        language = pressed.sender.language
        await self._access.check(pressed)
        text = await self._stored.read(conversation)
        if text and _digest(text) != digest:
            return await self._shown(language, conversation)
        await self._stored.store(conversation, "", pressed.sender.id)
        return self._say(language, "removed")

    async def _shown(self, language: str, conversation: Scope) -> tuple[Part, ...]:
        """Return the instructions with a button that removes them."""
        text = await self._stored.read(conversation)
        if not text:
            return self._say(language, "none")
        label = self._sentences.text(language, "buttons.remove_instructions")
        button = Button(label, f"{self.verb}:{_digest(text)}")
        return with_buttons(self._say(language, "shown", text=text), button)

    def _say(self, language: str, key: str, **values: object) -> tuple[Part, ...]:
        return self._sentences.say(language, f"instructions.{key}", **values)


def _digest(text: str) -> str:
    """Return what tells these instructions from later ones, short enough for a button."""
    return blake2b(text.encode(), digest_size=8).hexdigest()
