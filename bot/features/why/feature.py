"""What `/why` and the marks add to the bot."""

import re

from bot.commands.bot_command import BotCommand
from bot.feature import Feature, Services
from bot.features.why.commands import NAME, WhyCommand
from bot.features.why.marks import LearnedMarks
from bot.telegram.updates import ThumbsDown
from memory.behaviors.call_context import CallContext

_SEQ_AND_CODE = re.compile(r"\A\d{1,16} \S+")
"""What the command gets from a button: the sequence of an answer and the code of a memory."""


def feature(services: Services) -> Feature:
    """Return the feature; marks go before what they stand for is deleted."""
    memory = services.memory
    why = WhyCommand(services)
    marks = LearnedMarks(memory, services.chat)
    memory.correcting.fact_leaves.append(marks.leave_fact)
    memory.forgetting.messages_leave.append(marks.leave_messages)

    async def leave_all(call_context: CallContext) -> None:
        await marks.leave_all(call_context.conversation)

    return Feature(
        name=NAME,
        commands=[
            BotCommand(
                NAME,
                why.answer,
                buttons={NAME: why.press},
                takes=_SEQ_AND_CODE,
                section="memory",
            )
        ],
        arrivals={ThumbsDown: why.read_dislike},
        learned=[marks.show],
        erasing=[leave_all],
    )
