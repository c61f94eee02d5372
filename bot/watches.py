"""Periodic checks of every process: capacity, models, budget, send rate and erasures.

This file also builds the sender of announcements and starts the tasks that meet strangers.
"""

import asyncio
from collections.abc import Sequence
from functools import partial

from bot.commands.access import Operators
from bot.commands.broadcast import BroadcastStatus
from bot.commands.notices import AdminNotices
from bot.commands.sentences import Sentences
from bot.commands.strangers import Strangers
from bot.costs.budget import Budget
from bot.model.guarded import ModelCondition
from bot.runtime.announcing import Announcing
from bot.runtime.loop_watchdog import LoopWatchdog
from bot.runtime.periodic import BudgetWatch, CapacityWatch, ModelWatch, repeat
from bot.telegram.admission import Admission
from bot.telegram.copies import Copier
from bot.telegram.rate_limit import share_with_workers
from bot.telegram.telegram_chat import TelegramChat
from config.settings import Settings
from memory.memory import Memory
from memory.store.append_only_file import keep_clean

_SHARE_EVERY_S = 10.0
_MAX_SEND_S = 10.0
_ERASURES_EVERY_S = 1.0
"""How long after an erasure in one process the others drop the erased data from their caches."""
_ACCESS_EVERY_S = 2.0
"""How long after a change the other processes know who may use the bot."""


def meet(strangers: Strangers) -> "list[asyncio.Task[None]]":
    """Start the tasks that answer strangers and tell admins about them; return these tasks."""
    asking = repeat(strangers.tell_admins, "requests", _ACCESS_EVERY_S)
    return [asyncio.create_task(each) for each in (strangers.run(), asking)]


def start_watches(
    settings: Settings,
    memory: Memory,
    chat: TelegramChat,
    sentences: Sentences,
    conditions: Sequence[ModelCondition],
) -> "list[asyncio.Task[None]]":
    """Start all checks; return their tasks, which run until they are cancelled."""
    notices = AdminNotices(Operators(memory.store, settings), chat, sentences)
    admission = Admission(settings, memory.access)

    async def drop_removed() -> None:
        if admission.limits_groups:
            await memory.drop_removed()

    share = partial(share_with_workers, chat.limiter, memory.ready_queue(), settings.lease_s)
    watches = [
        CapacityWatch(memory.capacity, notices).run(),
        ModelWatch(memory, notices, conditions).run(),
        BudgetWatch(Budget(settings, memory.usage), notices).run(),
        repeat(share, "workers", _SHARE_EVERY_S),
        repeat(memory.drop_erased, "erasures", _ERASURES_EVERY_S),
        repeat(drop_removed, "access", _ACCESS_EVERY_S),
        LoopWatchdog().run(),
    ]
    if settings.redis_url is None:
        watches.append(keep_clean(memory.client, memory.erased))
    return [asyncio.create_task(each) for each in watches]


def announcing_of(
    settings: Settings, memory: Memory, chat: TelegramChat, sentences: Sentences
) -> Announcing:
    """Return what sends announcements in a worker."""
    timeout_s = min(_MAX_SEND_S, settings.lease_s / 2)
    copier = Copier(chat, settings.sends_per_second, timeout_s)
    status = BroadcastStatus(chat, sentences)
    is_member = Admission(settings, memory.access).serves_person
    return Announcing(memory, copier, status, is_member, settings.lease_s)
