"""Notices an answer that promises to remind, although no reminder is set.

`promises.toml` has patterns for the languages of the catalogue; in another one no promise is found.
If in doubt, they find none.
"""

import re
from functools import partial
from pathlib import Path

from bot.commands.sentences import Sentences
from bot.features.reminders.tools import KIND
from bot.turn.notes import Below, called, patterns_in, says_any
from bot.turn.request import Request
from memory.behaviors.context import AgentContext
from memory.search.words import beginnings_of
from memory.work.items import WorkItems

promises_to_remind = partial(says_any, patterns_in(Path(__file__).with_name("promises.toml")))
"""Whether an answer says that it will remind the person, or that a reminder is set."""
_ASKS_TO_REMIND = re.compile(
    r"\bremind(?:er|ers)?\b|\berinner\w*|\brecu[eé]rda\w*|\brecordatorio\w*"
    r"|\bнапомн\w*|\bнапомина\w*|یادآور|یادم|به یاد|\blembr\w*|\b(?:meng|peng|di|ku)?ingatkan"
    r"|\bpengingat|\brappel\w*|\bricord\w*|\bpromemoria\b|\bhatırlat\w*|\bнагад\w*"
)
_OF_OURS = frozenset(("remember", "forget_memory", "set_reminder"))
"""Tools that set no reminder, or whose reminders are seen otherwise; others may set one."""


async def promise_note(
    reminders: WorkItems, sentences: Sentences, request: Request, context: AgentContext, text: str
) -> Below:
    """Return the correction of an answer, nothing if a reminder is set or may be."""
    has_failed = "set_reminder" in called(context, failed=True)
    changed = (*context.work.added, *context.work.cancelled)
    may_be_set = any(each.kind == KIND for each in changed) or called(context) - _OF_OURS
    if may_be_set or not (has_failed or promises_to_remind(text)):
        return Below()
    key = "off.not_saved"
    if context.uses_memory:
        message = context.user_message
        open_ = await reminders.list_open(context.conversation, message.sender_id)
        said = beginnings_of(f"{message.text}\n{text}")
        of_open = [beginnings_of(each.text) for each in open_]
        if any(not stems or stems & said for stems in of_open):
            return Below()
        # "You're welcome, I'll remind you then" is about a reminder that was set earlier.
        calls = (call for step in context.completed_steps for call in step.action.calls)
        has_listed = any(call.name == "list_reminders" for call in calls)
        asks = _ASKS_TO_REMIND.search(message.text.casefold()) and not has_listed
        if open_ and not asks and not has_failed:
            return Below()
        key = "claims.reminder_failed" if has_failed else "claims.reminder"
        if not request.last.sender.is_person:
            key = "error.anonymous_admin"
    return Below(correction=sentences.say(request.language, key)[0])
