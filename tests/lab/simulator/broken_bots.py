"""Bots with a class of the product exchanged for a broken one."""

from dataclasses import replace
from typing import Any

from bot.runtime.background_learner import BackgroundLearner
from bot.telegram.errors import OutcomeUnknown, Refused
from bot.turn.deliver import Deliverer
from bot.turn.outbox import Outbox
from bot.turn.runner import TurnRunner
from bot.turn.setting_aside import MAX_FAILURES, SetAside
from bot.turn.worker import Runner
from memory.learning.learner import LearningConfig
from memory.queue.open_turn import Committed, Lease, OpenTurn
from memory.queue.ready_queue import ReadyQueue, WakeUp
from memory.queue.turns import TurnStore
from memory.store.keys import Scope
from tests.lab.simulator.bot import Ends, SimulatedBot
from tests.lab.simulator.turn import NamingRunner
from tests.quiet_chat import no_export


class HastyBot(SimulatedBot):
    """Acknowledges each bell as soon as it is heard, before anything is answered."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        memory = self.memory
        self._worker._ready_queue = _HastyDoorbell(
            memory.client, memory.scripts, memory.keys.ready_queue
        )


class _HastyDoorbell(ReadyQueue):
    async def read(self, most: int, block_ms: int) -> list[WakeUp]:
        wake_ups = await super().read(most, block_ms)
        for wake_up in wake_ups:
            await self.acknowledge(wake_up)
        return wake_ups


class ForgetfulBot(SimulatedBot):
    """Says that a reply is durable and writes nothing."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        turns, usage = self.memory.turns, self.memory.usage
        self.memory.turns = _ForgetfulTurns(self.memory.store, turns._times, turns._tail, usage)


class _ForgetfulTurns(TurnStore):
    async def write_outbox(self, lease: Lease, parts: bytes) -> None:
        del parts
        await self.renew(lease)


class ClumsyBot(SimulatedBot):
    """Fails by a bug whenever a reply is to be written."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        turns, usage = self.memory.turns, self.memory.usage
        self.memory.turns = _ClumsyTurns(self.memory.store, turns._times, turns._tail, usage)


class _ClumsyTurns(TurnStore):
    async def write_outbox(self, lease: Lease, parts: bytes) -> None:
        del lease, parts
        raise AttributeError("simulated")


class DespairingBot(SimulatedBot):
    """Gives every turn up at once, with a notice."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        self._worker._runner = _DespairingRunner(self._worker._runner)


class _DespairingRunner:
    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    async def run(self, turn: OpenTurn) -> Committed:
        return await self._runner.run(replace(turn, failures=MAX_FAILURES))


class WordlessBot(SimulatedBot):
    """Says nothing where a turn is given up."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        runner = _turn_runner(self)
        runner._poison = _WordlessSetAside(self.memory.dead_letters, runner._answerer.apologise)


class _WordlessSetAside(SetAside):
    def _apology(self, turn: OpenTurn) -> Outbox:
        return replace(super()._apology(turn), parts=())


class DiscouragedBot(SimulatedBot):
    """Ends a reply at the first part of which nothing was heard."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        runner = _turn_runner(self)
        chat, timeout_s = runner._deliverer._chat, runner._deliverer._timeout_s
        runner._deliverer = _DiscouragedDeliverer(chat, timeout_s, no_export, lambda _: None)


class _DiscouragedDeliverer(Deliverer):
    async def _send(self, *arguments: Any) -> tuple[int, int]:
        try:
            return await super()._send(*arguments)
        except OutcomeUnknown as error:
            raise Refused("other") from error


class UnteachableBot(SimulatedBot):
    """Never looks at what is to be learned."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        idle = _IdleLearner(self.memory.learn)
        _turn_runner(self)._learn = idle.learn
        self._upkeep._learner = idle


class _IdleLearner(BackgroundLearner):
    def learn(self, conversation: Scope) -> None:
        del conversation


class InattentiveBot(SimulatedBot):
    """Learns without an embedder, and says that it has learned."""

    def __init__(self, ends: Ends) -> None:
        super().__init__(ends)
        self.memory._vectors = None
        self.memory.teach(LearningConfig())


def _turn_runner(bot: SimulatedBot) -> TurnRunner:
    named = bot._worker._runner
    assert isinstance(named, NamingRunner)
    assert isinstance(named.runner, TurnRunner)
    return named.runner
