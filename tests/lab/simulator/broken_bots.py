"""Ways to break a bot that was just built, mostly by a broken class in place of the product's."""

from dataclasses import replace
from typing import Any

from bot.runtime.background_learner import BackgroundLearner
from bot.turn.deliver import Delivery
from bot.turn.outbox import Outbox
from bot.turn.turn import MAX_FAILURES
from memory.erasure.forgetting import Forgetting
from memory.message import Message
from memory.queue.open_turn import Committed, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turn_store import TurnStore
from memory.store.keys import Scope
from memory.work.items import TakenWork, WorkItems
from tests.lab.simulator.bot import SimulatedBot
from tests.lab.simulator.turn import NamingDeliverer


class _HastyReadyQueue(ReadyQueue):
    async def read(self, max_wake_ups: int, block_ms: int) -> list[WakeUp]:
        wake_ups = await super().read(max_wake_ups, block_ms)
        for wake_up in wake_ups:
            await self.acknowledge(wake_up)
        return wake_ups


def hasty(bot: SimulatedBot) -> None:
    """Acknowledge each wake-up as soon as it is read, before anything is answered."""
    memory = bot.memory
    ready_queue = memory.keys.ready_queue
    bot._worker.ready_queue = _HastyReadyQueue(memory.client, memory.scripts, ready_queue)


class _ForgetfulTurns(TurnStore):
    async def write_outbox(self, turn: OpenTurn, *_: object, **__: object) -> None:
        await self.renew(turn)


def forgetful(bot: SimulatedBot, turns: type[TurnStore] = _ForgetfulTurns) -> None:
    """Report that a reply is durable, but do not store it."""
    memory = bot.memory
    queue = turns(memory.store, memory.turns._times, memory.turns._tail, memory.usage)
    bot._turn.turns = bot._worker.turns = queue


class _ClumsyTurns(TurnStore):
    async def write_outbox(self, *_: object, **__: object) -> None:
        raise AttributeError("simulated")


def clumsy(bot: SimulatedBot) -> None:
    """Raise an error whenever a reply should be stored."""
    forgetful(bot, _ClumsyTurns)


def despairing(bot: SimulatedBot) -> None:
    """Give up every turn at once, with a notice."""
    run_turn = bot._worker.run_turn

    async def give_up(opened: OpenTurn) -> Committed:
        return await run_turn(replace(opened, failures=MAX_FAILURES))

    bot._worker.run_turn = give_up


class _Forgetting(Forgetting):
    def __init__(self, forgetting: Forgetting) -> None:
        vars(self).update(vars(forgetting))


class _NothingStored(_Forgetting):
    async def find_exchange(self, *_: object, **__: object) -> list[Message]:
        return []


def stubborn(bot: SimulatedBot) -> None:
    """Change nothing when an answered message was edited."""
    bot.memory.forgetting = _NothingStored(bot.memory.forgetting)


class _Overtaken(_Forgetting):
    async def take_out(self, conversation: Scope, *asked: Any) -> None:
        await self.erase_messages(conversation, asked[0], f"race:{asked[0]}")
        await super().take_out(conversation, *asked)


def overtaken(bot: SimulatedBot) -> None:
    """Erase each exchange right before it is taken out, as a quicker process may. No defect."""
    bot.memory.forgetting = _Overtaken(bot.memory.forgetting)


class _AppendingDeliverer(NamingDeliverer):
    async def deliver(self, outbox: Outbox, *how: Any) -> Delivery:
        return await super().deliver(replace(outbox, replaces=()), *how)


def appending(bot: SimulatedBot) -> None:
    """Send a new reply below the former one instead of replacing that."""
    made_of, timeout_s = bot._connections, bot._turn.deliverer.timeout_s
    records = made_of.auditor.records
    bot._turn.deliverer = _AppendingDeliverer(made_of.telegram, timeout_s, records)


class _IdleLearner(BackgroundLearner):
    def learn(self, conversation: Scope) -> None:
        del conversation


def never_learning(bot: SimulatedBot) -> None:
    """Never start to learn."""
    idle = _IdleLearner(bot.memory.learn)
    bot._turn.learn = idle.learn
    bot._maintenance.learner = idle


def falsely_learning(bot: SimulatedBot) -> None:
    """Learn without an embedder, and report that everything is learned."""
    bot.memory.learner.vectors = None


class _OpenItems(WorkItems):
    async def close(self, taken: TakenWork, due: float, member: bytes = b"") -> bool:
        del taken, due, member
        return True


def repeating(bot: SimulatedBot) -> None:
    """Do not close the reminders that were sent."""
    bot._work.items = _OpenItems(bot.memory.store)
