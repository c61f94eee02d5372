"""Builds the turn worker from the settings, with the steps of a turn."""

from collections.abc import Callable, Mapping
from functools import partial

from bot.assistant import Assistant
from bot.commands.bot_command import Handler
from bot.commands.export import export_file
from bot.commands.sentences import Sentences
from bot.costs.budget import Budget
from bot.documents.formats import Formats, Limits
from bot.documents.imports import Imports
from bot.documents.scans import ScanReader
from bot.documents.upload import FileReader, Upload
from bot.model.speaker import NO_VOICES, Voices
from bot.runtime.due_reminders import DueReminders
from bot.telegram.admission import Admission
from bot.telegram.chat import Chat
from bot.turn.after import AfterTurn
from bot.turn.agent_step import AgentStep
from bot.turn.agreed_run import AgreedRun
from bot.turn.answer import Answerer, AnswerStep, CommandStep, UploadStep
from bot.turn.at_work import AtWork
from bot.turn.conversation_worker import ConversationWorker
from bot.turn.deliver import Deliverer
from bot.turn.draft import draft_of
from bot.turn.give_up import GiveUp
from bot.turn.load import ContextLoader
from bot.turn.observers import Observer
from bot.turn.permits import Permits, PersonLimits
from bot.turn.pictures import PictureStep
from bot.turn.quota import QuotaStep
from bot.turn.revision import RevisionStep
from bot.turn.save_claims import CheckedAgent
from bot.turn.spoken import SpokenAnswers
from bot.turn.turn import TurnRunner
from bot.turn.voice import VoiceStep
from bot.turn.worker import TurnWorker
from config.settings import Settings
from memory.behaviors.learning_mode import LearningModes
from memory.documents.library import Library
from memory.erasure.tool_runs import ToolRuns
from memory.memory import Memory
from memory.store.keys import Scope

_MAX_SEND_S = 10.0


class TurnBuilder:
    """Builds the turn worker of a bot; `observe` is called with the steps of all turns."""

    def __init__(
        self,
        settings: Settings,
        memory: Memory,
        chat: Chat,
        sentences: Sentences,
        observe: Observer,
    ) -> None:
        self._settings = settings
        self._memory = memory
        self._chat = chat
        self._sentences = sentences
        self._observe = observe
        limits = PersonLimits(settings.max_turns_per_person, settings.max_uploads_per_person)
        self._permits = Permits(limits, memory.mailbox.wake)

    def worker(
        self,
        assistant: Assistant,
        commands: Mapping[str, Handler],
        learn: Callable[[Scope], None],
        voices: Voices = NO_VOICES,
    ) -> TurnWorker:
        """Return the worker for all turns; `learn` starts learning from a conversation.

        `voices` hear voice messages and speak the answers to them.
        """
        memory = self._memory
        ready_queue = memory.ready_queue()
        turn = self.runner(assistant, commands, learn, voices)
        conversations = ConversationWorker(
            ready_queue, memory.turns, memory.histories, self._permits, turn.run
        )
        return TurnWorker(ready_queue, conversations, self._settings.max_concurrent_turns)

    def runner(
        self,
        assistant: Assistant,
        commands: Mapping[str, Handler],
        learn: Callable[[Scope], None],
        voices: Voices = NO_VOICES,
    ) -> TurnRunner:
        """Return the runner of a single turn, without leases."""
        memory, observe = self._memory, self._observe
        steps = self._steps(assistant, commands, learn, voices)
        letters, confirmations = memory.dead_letters, memory.confirmations
        give_up = GiveUp(letters, confirmations, self._sentences, observe).give_up
        return TurnRunner(
            memory.turns,
            memory.histories,
            Answerer(steps, give_up, self._sentences, confirmations, observe),
            self._deliverer(),
            AfterTurn(assistant.behaviors, learn, observe),
        )

    def due_reminders(self) -> DueReminders:
        """Return what sends reminders that are due."""
        reminders, lease_s = self._memory.reminders, self._settings.lease_s
        serves = Admission(self._settings, self._memory.access).serves
        return DueReminders(reminders, self._deliverer(), self._sentences, lease_s, serves)

    def _deliverer(self) -> Deliverer:
        timeout_s = min(_MAX_SEND_S, self._settings.lease_s / 2)
        export = partial(export_file, self._memory.exporter)
        return Deliverer(self._chat, timeout_s, export, self._observe)

    def _steps(
        self,
        assistant: Assistant,
        commands: Mapping[str, Handler],
        learn: Callable[[Scope], None],
        voices: Voices,
    ) -> list[AnswerStep]:
        """Return the steps that may answer; the first one with an answer gives it."""
        settings, memory, sentences = self._settings, self._memory, self._sentences
        loader = ContextLoader(
            assistant.behaviors, self._chat, assistant.selector, settings.recall_k, assistant.shown
        )
        at_work = AtWork(self._chat, settings.turn_timeout_s)
        drafting = at_work
        if settings.stream == "drafts":
            drafts = partial(draft_of, self._chat, sentences)
            drafting = AtWork(self._chat, settings.turn_timeout_s, drafts)
        quota = QuotaStep(memory.quotas, settings, Budget(settings, memory.usage), sentences)
        upload = self._upload(learn, assistant)
        agent = CheckedAgent(
            assistant.run,
            LearningModes(memory.scopes).mode,
            AgreedRun(ToolRuns(memory.store), assistant.run_tools),
        )
        answer: AnswerStep = AgentStep(agent, loader, sentences, drafting, self._observe).answer
        if voices.speaker:
            answer = SpokenAnswers(answer, voices.speaker, self._chat).answer
        detail = None if settings.image_detail == "off" else settings.image_detail
        return [
            RevisionStep(memory, self._chat, quota, sentences, learn).answer,
            CommandStep(commands, sentences, Admission(settings, memory.access)).answer,
            quota.answer,
            PictureStep(self._chat, memory.tokens, at_work, sentences, detail).answer,
            VoiceStep(voices.transcriber, self._chat, memory.tokens, at_work, sentences).answer,
            UploadStep(upload, self._permits, at_work, sentences).answer,
            answer,
        ]

    def _upload(self, learn: Callable[[Scope], None], assistant: Assistant) -> Upload | None:
        """Return the step that stores files, or None if the bot accepts no files."""
        settings, memory = self._settings, self._memory
        if settings.documents == "off":
            return None
        max_bytes = int(settings.max_document_mb * 2**20)
        scans = ScanReader(assistant.read_page)
        reader = FileReader(self._chat, Formats(Limits()), memory.tokens, max_bytes, scans)
        library = Library(memory.store, memory.scopes)
        imports = Imports(library, memory.confirmations, memory.tokens, self._sentences)
        return Upload(reader, imports, memory.scopes, self._sentences, learn)
