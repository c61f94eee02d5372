"""`/memory off`, `on`, `quiet`, `auto`, `ask`, `explicit`, `topics`: what memory does."""

from difflib import get_close_matches

import structlog

from bot.commands.access import Access
from bot.commands.bot_command import Answer
from bot.commands.sentences import Sentences
from bot.telegram.updates import IncomingMessage
from memory.behaviors.learning_mode import MODES, LearningModes
from memory.behaviors.other_topics import set_recall_topics
from memory.memory import Memory
from memory.store.keys import Scope

log = structlog.get_logger(__name__)

_ARGUMENTS = ("off", "on", "quiet", *MODES, "topics", "topics off")


class MemorySettings:
    """Changes the settings; in a group only its administrators may."""

    def __init__(self, memory: Memory, access: Access, sentences: Sentences) -> None:
        self._switch = memory.switch
        self._scopes = memory.scopes
        self._modes = LearningModes(memory.scopes)
        self._access = access
        self._sentences = sentences

    async def answer(self, asked: IncomingMessage, conversation: Scope) -> Answer:
        """Change the setting that the argument names, and say what it is now."""
        language, argument = asked.sender.language, " ".join(asked.text.lower().split())
        if argument not in _ARGUMENTS:
            return self._not_understood(language, argument)
        if argument.startswith("topics") and not conversation.is_private:
            return Answer(self._sentences.say(language, "memory.topics_private"))
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
            case "topics" | "topics off":
                is_on = argument == "topics"
                await set_recall_topics(self._scopes, conversation, is_on=is_on)
                key = "memory.topics_on" if is_on else "memory.topics_off"
        log.info("memory switched", to=argument)
        return Answer(self._sentences.say(language, key))

    def _not_understood(self, language: str, argument: str) -> Answer:
        """Name the arguments: a typing error must not leave memory on, or off, unnoticed."""
        near = get_close_matches(argument, _ARGUMENTS, n=1)
        keys = ["memory.did_you_mean"] * len(near) + ["memory.usage"]
        return Answer(self._sentences.say(language, *keys, word="".join(near)))
