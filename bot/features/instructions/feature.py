"""What instructions add to the bot."""

from collections.abc import Mapping

from bot.commands.bot_command import ANYTHING, BotCommand
from bot.commands.memory_entries import shortened
from bot.feature import Feature, Services
from bot.features.instructions.behavior import ChatInstructions, instructions_in
from bot.features.instructions.commands import InstructionsCommand
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

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
            ),
        ),
        behaviors=(stored,),
        memory_lines=(shown,),
        exports=(exported,),
    )
