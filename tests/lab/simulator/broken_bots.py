"""Bots in which one class of the product is replaced by a broken one."""

from dataclasses import replace
from typing import Any

from bot.runtime.background_learner import BackgroundLearner
from bot.telegram.chat import Destination
from bot.telegram.errors import OutcomeUnknown, Refused
from bot.turn.deliver import Deliverer, Delivery
from bot.turn.outbox import Outbox
from bot.turn.turn import MAX_FAILURES
from memory.erasure.forgetting import Forgetting
from memory.learning.learner import LearningConfig
from memory.message import Message
from memory.queue.open_turn import Committed, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turn_store import TurnStore
from memory.store.keys import Scope
from memory.work.items import TakenWork, WorkItems
from tests.lab.simulator.bot import Connections, SimulatedBot
from tests.lab.simulator.turn import NamingDeliverer, NamingGiveUp, ignore
from tests.quiet_chat import no_export


class HastyBot(SimulatedBot):
    """Acknowledges each wake-up as soon as it is read, before anything is answered."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        memory = self.memory
        self._worker.ready_queue = _HastyReadyQueue(
            memory.client, memory.scripts, memory.keys.ready_queue
        )


class _HastyReadyQueue(ReadyQueue):
    async def read(self, max_wake_ups: int, block_ms: int) -> list[WakeUp]:
        wake_ups = await super().read(max_wake_ups, block_ms)
        for wake_up in wake_ups:
            await self.acknowledge(wake_up)
        return wake_ups


class _ForgetfulTurns(TurnStore):
    async def write_outbox(self, turn: OpenTurn, *_: object, **__: object) -> None:
        await self.renew(turn)


class _ClumsyTurns(TurnStore):
    async def write_outbox(self, *_: object, **__: object) -> None:
        raise AttributeError("simulated")


class ForgetfulBot(SimulatedBot):
    """Reports that a reply is durable, but does not store it."""

    turns: type[TurnStore] = _ForgetfulTurns

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        turns, usage = self.memory.turns, self.memory.usage
        queue = self.turns(self.memory.store, turns._times, turns._tail, usage)
        self._turn.turns = self._worker.turns = queue


class ClumsyBot(ForgetfulBot):
    """Raises an error whenever it should store a reply."""

    turns = _ClumsyTurns


class DespairingBot(SimulatedBot):
    """Gives up every turn at once, with a notice."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        run_turn = self._worker.run_turn

        async def give_up(opened: OpenTurn) -> Committed:
            return await run_turn(replace(opened, failures=MAX_FAILURES))

        self._worker.run_turn = give_up


class SilentBot(SimulatedBot):
    """Sends no notice when it gives up a turn."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        memory = self.memory
        silent = _SilentGiveUp(memory.dead_letters, connections.auditor)
        self._turn.give_up = silent.give_up


class _SilentGiveUp(NamingGiveUp):
    def _notice(self, opened: OpenTurn) -> Outbox:
        return replace(super()._notice(opened), parts=())


class DiscouragedBot(SimulatedBot):
    """Connections a reply at the first part of which nothing was heard."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        chat, timeout_s = connections.telegram, self._turn.deliverer.timeout_s
        self._turn.deliverer = _DiscouragedDeliverer(chat, timeout_s, no_export, ignore)


class _DiscouragedDeliverer(Deliverer):
    async def _send(self, *arguments: Any) -> tuple[int, Destination]:
        try:
            return await super()._send(*arguments)
        except OutcomeUnknown as error:
            raise Refused("other") from error


class _Forgetting(Forgetting):
    def __init__(self, forgetting: Forgetting) -> None:
        vars(self).update(vars(forgetting))


class _NothingStored(_Forgetting):
    async def find_exchange(self, *_: object, **__: object) -> list[Message]:
        return []


class _Overtaken(_Forgetting):
    async def take_out(self, conversation: Scope, *asked: Any) -> None:
        await self.erase_messages(conversation, asked[0], f"race:{asked[0]}")
        await super().take_out(conversation, *asked)


class StubbornBot(SimulatedBot):
    """Changes nothing when an answered message was edited."""

    forgetting: type[_Forgetting] = _NothingStored

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self.memory.forgetting = self.forgetting(self.memory.forgetting)


class OvertakenBot(StubbornBot):
    """Erases each exchange right before it is taken out, as a quicker process may. No defect."""

    forgetting = _Overtaken


class AppendingBot(SimulatedBot):
    """Sends a new reply below the former one instead of replacing that."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        chat, timeout_s = connections.telegram, self._turn.deliverer.timeout_s
        records = connections.auditor.records
        self._turn.deliverer = _AppendingDeliverer(chat, timeout_s, records)


class _AppendingDeliverer(NamingDeliverer):
    async def deliver(self, outbox: Outbox, *how: Any) -> Delivery:
        return await super().deliver(replace(outbox, replaces=()), *how)


class NeverLearningBot(SimulatedBot):
    """Never starts to learn."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        idle = _IdleLearner(self.memory.learn)
        self._turn.learn = idle.learn
        self._maintenance._learner = idle


class _IdleLearner(BackgroundLearner):
    def learn(self, conversation: Scope) -> None:
        del conversation


class FalselyLearningBot(SimulatedBot):
    """Learns without an embedder, and reports that everything is learned."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self.memory._vectors = None
        self.memory.enable_learning(LearningConfig())
        self._learner._learn_from = self.memory.learn


class ObedientBot(SimulatedBot):
    """Answers a task although it was erased."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        *others, _, agent = self._turn.answerer.steps
        self._turn.answerer.steps = [*others, agent]


class RepeatingBot(SimulatedBot):
    """Does not close the reminders that it has sent."""

    def __init__(self, connections: Connections) -> None:
        super().__init__(connections)
        self._work._items = _OpenItems(self.memory.store)


class _OpenItems(WorkItems):
    async def close(self, taken: TakenWork, due: float, member: bytes = b"") -> bool:
        del taken, due, member
        return True
