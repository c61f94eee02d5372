"""`/memory off`, `on`, `quiet`, `auto`, `ask`, `explicit`: whether and how memories are made."""

from difflib import get_close_matches

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.telegram.updates import IncomingMessage
from memory.behaviors.learning_mode import MODES, LearningModes
from memory.erasure.pause import MemorySwitch
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ARGUMENTS = ("off", "on", "quiet", *MODES)


class MemorySettings:
    """Changes the settings; in a group only its administrators may."""

    def __init__(
        self, switch: MemorySwitch, modes: LearningModes, access: Access, sentences: Sentences
    ) -> None:
        self._switch = switch
        self._modes = modes
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Change the setting that the argument names, and say what it is now."""
        language, argument = asked.sender.language, asked.text.strip().lower()
        if argument not in _ARGUMENTS:
            return self._not_understood(language, argument)
        if refusal := await self._access.refusal(asked, "memory"):
            return refusal
        key = f"memory.mode_{argument}"
        match argument:
            case "off" | "on":
                switch = self._switch.turn_off if argument == "off" else self._switch.turn_on
                await switch(conversation)
                key = f"memory.turned_{argument}"
            case "quiet":
                is_quiet = await self._switch.toggle_quiet(conversation, asked.update_id)
                key = "memory.marks_off" if is_quiet else "memory.marks_on"
            case "auto" | "ask" | "explicit":
                await self._modes.set_mode(conversation, argument)
        log.info("memory switched", to=argument)
        return Answer(self._sentences.say(language, key))

    def _not_understood(self, language: str, argument: str) -> Answer:
        """Name the arguments: a typing error must not leave memory on, or off, unnoticed."""
        near = get_close_matches(argument, _ARGUMENTS, n=1)
        keys = ["memory.did_you_mean"] * len(near) + ["memory.usage"]
        return Answer(self._sentences.say(language, *keys, word="".join(near)))
