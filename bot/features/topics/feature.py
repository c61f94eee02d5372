"""What topics add to the bot, beyond that each has a memory of its own."""

from collections.abc import Mapping

from bot.commands.memory_settings import MemoryWords
from bot.feature import Feature, Services
from bot.features.topics.other_topics import OtherTopics, recalls_topics, set_recall_topics
from bot.features.topics.titles import TopicTitles
from memory.scopes.scope_memory import ScopeMemory
from memory.store.keys import Scope

_ON, _OFF = "topics", "topics off"


def feature(services: Services) -> Feature:
    """Return the feature."""
    memory = services.memory

    async def change(conversation: Scope, word: str) -> str:
        await set_recall_topics(memory.scopes, conversation, is_on=word == _ON)
        return _said(conversation, is_on=word == _ON)

    async def exported(_: Scope, facts: ScopeMemory) -> Mapping[str, object]:
        name = "private_topics_recall_each_other" if facts.scope.is_person else "recalls_topics"
        return {name: recalls_topics(facts)}

    return Feature(
        name="topics",
        switches=[MemoryWords((_ON, _OFF), change, _shown)],
        behaviors=[OtherTopics(memory.histories)],
        learned=[TopicTitles(memory, services.chat).give],
        exports=[exported],
    )


def _shown(conversation: Scope, facts: ScopeMemory) -> str:
    is_on = recalls_topics(facts)
    if not is_on and not conversation.topic_id:
        return ""
    return _said(conversation, is_on=is_on)


def _said(conversation: Scope, *, is_on: bool) -> str:
    where = "" if conversation.is_private else "group_"
    return f"topics.{where}{'on' if is_on else 'off'}"
