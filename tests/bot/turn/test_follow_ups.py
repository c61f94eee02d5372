"""A follow-up is searched for together with the question before it: fifty made-up pairs."""

import asyncio
from collections.abc import Sequence
from zoneinfo import ZoneInfo

import pytest

from bot.turn.load import ContextLoader
from bot.turn.request import Request
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from memory.behaviors.context import CallContext
from memory.memory import Memory
from memory.message import Message
from memory.scopes.fields import PersonsZone
from memory.scopes.history import ChatHistory
from memory.scopes.selectors import BlockWindowMessageSelector
from memory.search.message_search import SearchResult
from memory.store.errors import LeaseLost
from memory.store.keys import Scope
from tests.bot.telegram import raw
from tests.bot.turn.plain_assistant import plain_assistant
from tests.quiet_chat import QuietChat

NOON = 1_762_948_800.0
ANNA = 7

SAID_AND_ASKED = {
    "I sold my bicycle to Marta": "Who bought the bicycle?",
    "My sister moved to Lisbon": "Where does my sister live?",
    "The boat Aurora sank near Bari": "Did the boat sink?",
    "Ich habe den Führerschein bestanden": "Habe ich den Führerschein?",
    "Mein Vermieter heißt Brandl": "Wie heißt der Vermieter?",
    "Моя кошка сломала лапу": "Что с лапой у кошки?",
    "Я купил дачу под Рязанью": "Я купил дачу?",
    "خواهرم گربه خرید": "خواهرم گربه دارد؟",
    "我买了一辆红色的摩托车": "我的摩托车是什么颜色？",
    "Mi hermana vendió la guitarra": "¿Quién vendió la guitarra?",
}
FOLLOW_UPS = ("Thanks! When was that?", "und wann war das", "А когда это было", "و کی بود", "Why?")
NO_FOLLOW_UPS = ("ok", "Hi! Wie geht es dir?", "What's 8 times 7?", "What is the capital of Peru?")


def request_of(text: str) -> Request:
    message = Message(0, 0, "user", text, NOON, ANNA, "Anna", message_ids=(5,))
    return Request((raw.inbound(raw.message(text)),), message, (message,))


def loader_with(behavior: AIContextBehavior) -> ContextLoader:
    behaviors = AIContextBehaviorManager([behavior], time_limit_s=60)
    assistant = plain_assistant(behaviors, BlockWindowMessageSelector(2, 100, 2))
    return ContextLoader(assistant, QuietChat(), recall_k=8)


async def test_a_turn_counts_days_where_its_person_is(memory: Memory) -> None:
    await memory.scopes.set_field(Scope.of_person(ANNA), PersonsZone("Asia/Tokyo"))
    await memory.scopes.read(Scope.of_person(ANNA))
    history = await ChatHistory.read(memory.histories, Scope.of_chat(ANNA))
    context = await loader_with(AIContextBehavior()).load(request_of("Hello"), history)
    assert context.call_context.zone == ZoneInfo("Asia/Tokyo")


async def test_no_hook_goes_on_after_recall_has_failed(memory: Memory) -> None:
    """Its worker may have lost the conversation, and nobody would wait for what it asks."""
    begun, ended = asyncio.Event(), asyncio.Event()

    class Slow(AIContextBehavior):
        async def on_model_invoke(self, *_: object) -> str:
            begun.set()
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()
            return ""

    class Erased(ChatHistory):
        async def search(self, *_: object, **__: object) -> list[SearchResult]:
            await begun.wait()
            raise LeaseLost

    history = await ChatHistory.read(memory.histories, Scope.of_chat(7))
    history.__class__ = Erased
    with pytest.raises(LeaseLost):
        await loader_with(Slow()).load(request_of("Hello"), history)
    assert ended.is_set()


class Asked(AIContextBehavior):
    async def on_model_invoke(self, call_context: CallContext, new: Sequence[Message]) -> str:
        return call_context.question(new)


async def test_a_follow_up_finds_what_the_question_before_it_found(memory: Memory) -> None:
    loader = loader_with(Asked())

    async def recalled(text: str) -> set[str]:
        history = await ChatHistory.read(memory.histories, Scope.of_chat(7))
        context = await loader.load(request_of(text), history)
        # Behaviors search for the same.
        assert context.background.memory_context == context.call_context.query
        return {each.text for found in context.background.recalled for each in found.messages}

    history = await ChatHistory.read(memory.histories, Scope.of_chat(7))
    for said in SAID_AND_ASKED:
        await history.append_user_message(said, NOON, sender_id=ANNA, sender_name="Anna")
        await history.append_assistant_message("I see.", NOON)
    missed = []
    for said, asked in SAID_AND_ASKED.items():
        history = await ChatHistory.read(memory.histories, Scope.of_chat(7))
        await history.append_user_message(asked, NOON + 60, sender_id=ANNA, sender_name="Anna")
        await history.append_assistant_message("Let me think.", NOON + 60)
        missed += [(asked, text) for text in FOLLOW_UPS if said not in await recalled(text)]
        for text in NO_FOLLOW_UPS:
            assert said not in await recalled(text)
    assert missed == []
