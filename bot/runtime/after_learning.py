"""What follows when a conversation was learned from: its topic gets a name, its messages marks.

Before a conversation is erased, its messages lose their marks.
"""

from bot.commands.erasing import Deleting
from bot.commands.learned_marks import LearnedMarks
from bot.runtime.background_learner import AfterLearning
from bot.runtime.topic_titles import TopicTitles
from bot.telegram.chat import Chat
from memory.behaviors.call_context import CallContext
from memory.memory import Memory
from memory.store.keys import Scope


def after_learning(memory: Memory, chat: Chat) -> AfterLearning:
    """Return what to do with each conversation from which was learned."""
    titles, marks = TopicTitles(memory, chat), LearnedMarks(memory, chat)

    async def after(conversation: Scope) -> None:
        await titles.give(conversation)
        await marks.show(conversation)

    return after


def before_erasing(memory: Memory, chat: Chat, deleting: Deleting) -> Deleting:
    """Return what to do with each conversation that is about to be erased."""
    marks = LearnedMarks(memory, chat)

    async def before(call_context: CallContext) -> None:
        await deleting(call_context)
        await marks.leave_all(call_context.conversation)

    return before
