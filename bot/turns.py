"""Builds the turn worker and the loop of due work, from the services and the features."""

from dataclasses import dataclass, replace

from bot.assistant import Assistant
from bot.commands.bot_command import Handler
from bot.feature import Services
from bot.runtime.work import WorkLoop
from bot.turn.agent_step import AgentStep
from bot.turn.answer import Answerer, AnswerStep, CommandStep, FileSteps, QuotaStep
from bot.turn.deliver import Deliverer
from bot.turn.give_up import GiveUp
from bot.turn.load import ContextLoader
from bot.turn.observers import Observer
from bot.turn.revision import RevisionStep
from bot.turn.tool_questions import AgreedRun
from bot.turn.turn import AfterTurn, TurnRunner
from bot.turn.worker import TurnWorker

_MAX_SEND_S = 10.0


@dataclass(frozen=True, slots=True, eq=False)
class TurnBuilder:
    """Builds the turn worker of a bot; `observe` is called with the steps of all turns."""

    services: Services
    observe: Observer

    def worker(self, assistant: Assistant, commands: Handler) -> TurnWorker:
        """Return the worker for all turns."""
        memory, permits = self.services.memory, self.services.permits
        turn = self.runner(assistant, commands)
        max_turns = self.services.settings.max_concurrent_turns
        return TurnWorker(
            memory.ready_queue(), memory.turns, memory.histories, permits, turn.run, max_turns
        )

    def runner(self, assistant: Assistant, commands: Handler) -> TurnRunner:
        """Return what runs one turn; its caller holds the lease."""
        memory, observe = self.services.memory, self.observe
        steps = self._steps(assistant, commands)
        give_up = GiveUp(memory.dead_letters, self.services.sentences, observe).give_up
        return TurnRunner(
            memory.turns,
            memory.histories,
            Answerer(steps, give_up, self.services.sentences, observe),
            self._deliverer(),
            AfterTurn(assistant.behaviors, self.services.learn, observe),
        )

    def work(self) -> WorkLoop:
        """Return what does the work of features when it is due."""
        memory, lease_s = self.services.memory, self.services.settings.lease_s
        kinds = [each for feature in self.services.features for each in feature.work]
        serves = self.services.admission.serves
        return WorkLoop(memory.work, kinds, self._deliverer(), lease_s, serves)

    def _deliverer(self) -> Deliverer:
        timeout_s = min(_MAX_SEND_S, self.services.settings.lease_s / 2)
        make_file = self.services.memory.exporter.file
        return Deliverer(self.services.chat, timeout_s, make_file, self.observe)

    def _steps(self, assistant: Assistant, commands: Handler) -> list[AnswerStep]:
        """Return the steps that may answer; the first one with an answer gives it."""
        services, sentences = self.services, self.services.sentences
        features = services.features
        settings, memory, chat = services.settings, services.memory, services.chat
        loader = ContextLoader(
            assistant.behaviors, chat, assistant.selector, settings.recall_k, assistant.shown
        )
        at_work = drafting = services.at_work
        for draft_of in (each.draft_of for each in features if each.draft_of):
            drafting = replace(at_work, draft_of=draft_of)
        quota = QuotaStep(memory.quotas, services.budget, sentences)
        agent = AgentStep(
            assistant.run,
            loader,
            sentences,
            drafting,
            self.observe,
            AgreedRun(memory.questions, assistant.run_tools),
            [note for feature in features for note in feature.notes],
            [finish for feature in features for finish in feature.finishes],
        )
        files = [step for feature in features for step in feature.steps]
        return [
            RevisionStep(memory, chat, quota, sentences, services.learn).answer,
            CommandStep(commands, sentences, services.admission).answer,
            quota.answer,
            FileSteps(files, services.permits, services.files, at_work, sentences).answer,
            agent.answer,
        ]
