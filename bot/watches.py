"""Periodic checks of every process: capacity, models, budget, send rate and erasures."""

import asyncio
from collections.abc import Sequence
from functools import partial

from bot.commands.access import Operators
from bot.commands.notices import AdminNotices
from bot.commands.sentences import Sentences
from bot.costs.budget import budget_of
from bot.model.guarded import ModelCondition
from bot.runtime.loop_watchdog import LoopWatchdog
from bot.runtime.periodic import BudgetWatch, CapacityWatch, ModelWatch, repeat
from bot.telegram.rate_limit import share_with_workers
from bot.telegram.telegram_chat import TelegramChat
from config.settings import Settings
from memory.memory import Memory
from memory.store.append_only_file import keep_clean

_SHARE_EVERY_S = 10.0
_ERASURES_EVERY_S = 0.5
"""So long after an erasure in one process the caches of the others drop the erased data."""


def start_watches(
    settings: Settings,
    memory: Memory,
    chat: TelegramChat,
    sentences: Sentences,
    conditions: Sequence[ModelCondition],
) -> "list[asyncio.Task[None]]":
    """Start all checks; return their tasks, which run until they are cancelled."""
    notices = AdminNotices(Operators(memory.store, settings.admin_user_ids), chat, sentences)
    share = partial(share_with_workers, chat.limiter, memory.ready_queue(), settings.lease_s)
    watches = [
        CapacityWatch(memory.capacity, notices).run(),
        ModelWatch(memory, notices, conditions).run(),
        BudgetWatch(budget_of(settings, memory.usage), notices).run(),
        repeat(share, "workers", _SHARE_EVERY_S),
        repeat(memory.drop_erased, "erasures", _ERASURES_EVERY_S),
        LoopWatchdog().run(),
    ]
    if settings.redis_url is None:
        watches.append(keep_clean(memory.client, memory.erased))
    return [asyncio.create_task(each) for each in watches]
