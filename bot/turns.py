"""Builds the turn worker from the settings, with the steps of a turn."""

from collections.abc import Sequence
from functools import partial

from bot.assistant import Assistant
from bot.commands.bot_command import Handler
from bot.commands.export import export_file
from bot.feature import Feature, Services
from bot.runtime.work import WorkLoop
from bot.turn.agent_step import AgentStep
from bot.turn.answer import Answerer, AnswerStep, CommandStep, FileSteps, QuotaStep
from bot.turn.conversation_worker import ConversationWorker, TurnWorker
from bot.turn.deliver import Deliverer
from bot.turn.draft import TypingIndicator, draft_of
from bot.turn.give_up import GiveUp
from bot.turn.load import ContextLoader
from bot.turn.observers import Observer
from bot.turn.revision import RevisionStep
from bot.turn.save_claims import CheckedAgent
from bot.turn.tool_questions import AgreedRun
from bot.turn.turn import AfterTurn, TurnRunner
from memory.behaviors.learning_mode import LearningModes

_MAX_SEND_S = 10.0


class TurnBuilder:
    """Builds the turn worker of a bot; `observe` is called with the steps of all turns."""

    def __init__(
        self, services: Services, observe: Observer, features: Sequence[Feature] = ()
    ) -> None:
        self._services = services
        self._settings = services.settings
        self._memory = services.memory
        self._permits = services.permits
        self._chat = services.chat
        self._sentences = services.sentences
        self._observe = observe
        self._features = features

    def worker(self, assistant: Assistant, commands: Handler) -> TurnWorker:
        """Return the worker for all turns."""
        memory = self._memory
        ready_queue = memory.ready_queue()
        turn = self.runner(assistant, commands)
        conversations = ConversationWorker(
            ready_queue, memory.turns, memory.histories, self._permits, turn.run
        )
        return TurnWorker(ready_queue, conversations, self._settings.max_concurrent_turns)

    def runner(self, assistant: Assistant, commands: Handler) -> TurnRunner:
        """Return the runner of a single turn, without leases."""
        memory, observe = self._memory, self._observe
        steps = self._steps(assistant, commands)
        give_up = GiveUp(memory.dead_letters, self._sentences, observe).give_up
        return TurnRunner(
            memory.turns,
            memory.histories,
            Answerer(steps, give_up, self._sentences, observe),
            self._deliverer(),
            AfterTurn(assistant.behaviors, self._services.learn, observe),
        )

    def work(self) -> WorkLoop:
        """Return what does the work of features when it is due."""
        memory, lease_s = self._memory, self._settings.lease_s
        kinds = [each for feature in self._features for each in feature.work]
        serves = self._services.admission.serves
        return WorkLoop(memory.work, kinds, self._deliverer(), lease_s, serves)

    def _deliverer(self) -> Deliverer:
        timeout_s = min(_MAX_SEND_S, self._settings.lease_s / 2)
        export = partial(export_file, self._memory.exporter)
        return Deliverer(self._chat, timeout_s, export, self._observe)

    def _steps(self, assistant: Assistant, commands: Handler) -> list[AnswerStep]:
        """Return the steps that may answer; the first one with an answer gives it."""
        settings, memory, sentences = self._settings, self._memory, self._sentences
        loader = ContextLoader(
            assistant.behaviors, self._chat, assistant.selector, settings.recall_k, assistant.shown
        )
        at_work = self._services.at_work
        drafting = at_work
        if settings.stream == "drafts":
            drafts = partial(draft_of, self._chat, sentences)
            drafting = TypingIndicator(self._chat, settings.turn_timeout_s, drafts)
        quota = QuotaStep(memory.quotas, settings, self._services.budget, sentences)
        agent = CheckedAgent(
            assistant.run,
            LearningModes(memory.scopes).mode,
            AgreedRun(memory.questions, assistant.run_tools),
            [note for feature in self._features for note in feature.notes],
            [finish for feature in self._features for finish in feature.finishes],
        )
        answer: AnswerStep = AgentStep(agent, loader, sentences, drafting, self._observe).answer
        files = [step for feature in self._features for step in feature.steps]
        file_steps = FileSteps(files, self._permits, self._services.files, at_work, sentences)
        return [
            RevisionStep(memory, self._chat, quota, sentences, self._services.learn).answer,
            CommandStep(commands, sentences, self._services.admission).answer,
            quota.answer,
            file_steps.answer,
            answer,
        ]
