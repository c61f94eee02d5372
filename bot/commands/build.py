"""Lists all commands and builds them; used by the composition root alone.

To add a command: write a file with its handler, list it here, and add its sentences to all files of
`bot/language`. Menus, /help and the checks follow from the list.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from bot.commands import reminder_list, reminder_questions, tool_questions
from bot.commands.access import Access, Operators
from bot.commands.at_once import StopCommand
from bot.commands.bot_command import BotCommand, ButtonHandler, Handler
from bot.commands.bring_along import ImportCommand
from bot.commands.broadcast import BroadcastCommand, BroadcastStatus, MuteCommand
from bot.commands.clear_memory import ClearMemoryCommand
from bot.commands.consent import ConsentButtons
from bot.commands.dead_letters import DeadLetterList
from bot.commands.document_list import DocumentList
from bot.commands.erasing import ClearCommand, Deleting, ForgetCommand
from bot.commands.export import ExportCommand
from bot.commands.fact_edits import COMMAND as EDITED
from bot.commands.fact_edits import FactEdits
from bot.commands.general import GeneralCommands, HelpCommand
from bot.commands.instructions import InstructionsCommand
from bot.commands.invite import InviteCommand
from bot.commands.learned_marks import LearnedMarks
from bot.commands.memory_deletion import MemoryDeletion
from bot.commands.memory_entries import MemoryEntries
from bot.commands.memory_list import MemoryList
from bot.commands.memory_settings import MemorySettings
from bot.commands.notices import AdminNotices
from bot.commands.off_record import OffRecordCommands
from bot.commands.operators import ModelsInUse, StatsCommands
from bot.commands.paged_list import PagedList
from bot.commands.people_list import PeopleList
from bot.commands.privacy import PrivacyCommand
from bot.commands.recall import RecallCommand
from bot.commands.receipts import Receipts
from bot.commands.reload import ReloadAll, ReloadCommand, cannot_reload
from bot.commands.reminder_list import RemindersCommand
from bot.commands.reminder_questions import ReminderButtons
from bot.commands.retry import RetryCommand
from bot.commands.sentences import Sentences
from bot.commands.strangers import Strangers
from bot.commands.usage import UsageCommand, UsageReport
from bot.commands.used_memories import UsedMemories
from bot.commands.why import WhyCommand
from bot.costs.budget import Budget
from bot.model.circuit_breaker import CircuitBreaker
from bot.telegram.admission import Admission
from bot.telegram.bot_account import BotIdentity
from bot.telegram.chat import Chat
from config.settings import Settings
from memory.behaviors.chat_instructions import ChatInstructions
from memory.documents.library import Library
from memory.limits.stats import count_conversation
from memory.memory import Memory


@dataclass(frozen=True, slots=True)
class Running:
    """What only a running bot knows or does."""

    me: BotIdentity
    breaker: CircuitBreaker
    deleting: Deleting
    reload_all: ReloadAll = cannot_reload


@dataclass(frozen=True, slots=True)
class CommandSet:
    """All commands in the order of the menus, and the buttons of commands and of tools by verb.

    `edits` takes new wordings of facts. `strangers` takes messages of strangers.
    """

    listed: tuple[BotCommand, ...]
    buttons: Mapping[str, ButtonHandler]
    edits: FactEdits
    strangers: Strangers

    @property
    def handlers(self) -> dict[str, Handler]:
        """Return the handlers by the name of their command."""
        return {command.name: command.handler for command in self.listed}


def build_commands(
    settings: Settings, memory: Memory, chat: Chat, sentences: Sentences, running: Running
) -> CommandSet:
    """Return all commands, each behind the checks that it declares."""
    operators = Operators(memory.store, settings)
    access = Access(chat, sentences, operators, memory.off_record.is_open)
    receipts = Receipts(memory.jobs, chat, sentences)
    marks = LearnedMarks(memory, chat)
    edits = FactEdits(memory, access, marks, chat, sentences)
    count = partial(count_conversation, memory.client, memory.keys)
    notices = AdminNotices(operators, chat, sentences)
    admission = Admission(settings, memory.access)
    strangers = Strangers(memory, admission, chat, sentences, notices)
    status = BroadcastStatus(chat, sentences)
    entries = MemoryEntries(memory.histories, count, sentences, settings.window_messages)
    others = [
        *_talk_commands(memory, access, sentences, running.me),
        *_memory_commands(memory, access, edits, entries, marks),
        *_conversation_commands(memory, sentences, running.deleting),
        *_person_commands(settings, memory, receipts, marks, sentences),
        _privacy_command(settings, memory, access, sentences),
        *_operators_commands(settings, memory, receipts, sentences, running.breaker),
        BotCommand("reload", ReloadCommand(running.reload_all, sentences).answer, "operators"),
        *_access_commands(memory, strangers, sentences, running.me),
        BroadcastCommand(memory, status, sentences, admission.serves_person).command,
    ]
    listed = (*others, HelpCommand(others, running.me, operators, sentences).command)
    commands = tuple(map(access.guarded, listed))
    buttons = {verb: act for command in commands for verb, act in command.buttons.items()}
    consent = ConsentButtons(memory.consent, access, marks, chat, sentences)
    buttons |= {**consent.handlers, **edits.buttons, **tool_questions.buttons(memory, sentences)}
    return CommandSet(commands, buttons, edits, strangers)


def _talk_commands(
    memory: Memory, access: Access, sentences: Sentences, me: BotIdentity
) -> tuple[BotCommand, ...]:
    """Return what is about the talk itself."""
    general = GeneralCommands(me, memory.off_record, sentences)
    retry = RetryCommand(memory, access, sentences)
    return (
        BotCommand("start", general.start, "unlisted"),
        BotCommand("ask", general.ask, "groups"),
        BotCommand("new", general.new),
        BotCommand("stop", StopCommand(sentences).answer),
        BotCommand("retry", retry.nothing_to_retry, buttons=retry.buttons),
    )


def _memory_commands(
    memory: Memory, access: Access, edits: FactEdits, entries: MemoryEntries, marks: LearnedMarks
) -> tuple[BotCommand, ...]:
    """Return what shows and changes single memories."""
    sentences = entries.sentences
    library = Library(memory.store, memory.scopes)
    deletion = MemoryDeletion(memory, library, marks)
    switches = MemorySettings(memory, access, sentences)
    memories = MemoryList(entries, deletion, edits, switches, access)
    documents = PagedList(DocumentList(library, sentences, access), sentences)
    recall = RecallCommand(memory.histories, memory.off_record, sentences)
    off_record = OffRecordCommands(memory.off_record, sentences)
    instructions = InstructionsCommand(ChatInstructions(memory.scopes), access, sentences)
    used = UsedMemories(memory.histories, entries, sentences)
    why = WhyCommand(used, deletion, edits, access, memory.mailbox)
    return (
        BotCommand("memory", memories.answer, buttons={MemoryList.verb: memories.press}),
        BotCommand(EDITED, edits.answer, "unlisted"),
        BotCommand("why", why.answer, buttons={"why": why.press}),
        BotCommand("off", off_record.off, "private"),
        BotCommand("back", off_record.back, "private"),
        BotCommand("recall", recall.answer),
        BotCommand(
            "instructions", instructions.answer, buttons={instructions.verb: instructions.remove}
        ),
        BotCommand("documents", documents.show, buttons={DocumentList.verb: documents.press}),
    )


def _conversation_commands(
    memory: Memory, sentences: Sentences, deleting: Deleting
) -> tuple[BotCommand, ...]:
    """Return what is about one conversation as a whole."""
    count = partial(count_conversation, memory.client, memory.keys)
    export = ExportCommand(memory.exporter, sentences)
    clear = ClearCommand(memory.confirmations, memory.forgetting, count, deleting, sentences)
    imports = ImportCommand(memory.confirmations, memory.mailbox, sentences)
    import_buttons = {"import": imports.agree, "dont_import": imports.refuse}
    import_buttons["read_document"] = imports.read_document
    return (
        BotCommand("import", imports.answer, "private", import_buttons),
        BotCommand("export", export.answer, group_admins_only=True),
        BotCommand("clear", clear.ask, buttons={"clear": clear.clear}, group_admins_only=True),
    )


def _person_commands(
    settings: Settings,
    memory: Memory,
    receipts: Receipts,
    marks: LearnedMarks,
    sentences: Sentences,
) -> tuple[BotCommand, ...]:
    """Return what is about one person."""
    forget = ForgetCommand(memory, receipts, marks, sentences)
    report = UsageReport(Budget(settings, memory.usage), sentences)
    usage = UsageCommand(memory.usage, memory.quotas, memory.mailbox, settings, report)
    reminders = RemindersCommand(memory.reminders, memory.time_zones, sentences)
    agreed = ReminderButtons(memory.reminders, memory.time_zones, sentences)
    reminder_buttons = {reminder_list.VERB: reminders.press, reminder_questions.VERB: agreed.press}
    forget_buttons = {"forget": forget.forget, "delete_message": forget.delete_message}
    return (
        BotCommand("forget", forget.ask, buttons=forget_buttons),
        BotCommand("reminders", reminders.answer, buttons=reminder_buttons),
        BotCommand("usage", usage.answer, "private"),
        MuteCommand(memory.audience, sentences).command,
    )


def _privacy_command(
    settings: Settings, memory: Memory, access: Access, sentences: Sentences
) -> BotCommand:
    """Return what says what is stored; the operator can look only if the inspector is on."""
    look = memory.look if settings.inspector_token else None
    privacy = PrivacyCommand(settings, look, access, sentences)
    return BotCommand("privacy", privacy.answer, buttons={PrivacyCommand.verb: privacy.press})


def _operators_commands(
    settings: Settings,
    memory: Memory,
    receipts: Receipts,
    sentences: Sentences,
    breaker: CircuitBreaker,
) -> tuple[BotCommand, ...]:
    """Return what is for the operators of the bot alone."""
    models = ModelsInUse(settings.openai_model, settings.fallback_model or "", breaker)
    stats = StatsCommands(memory.store, memory.mailbox, memory.capacity, models, sentences)
    letters = PagedList(DeadLetterList(memory.dead_letters, sentences), sentences)
    clear = ClearMemoryCommand(memory.confirmations, receipts, sentences)
    letters_buttons = {DeadLetterList.verb: letters.press}
    return (
        BotCommand("stats", stats.stats, "operators"),
        BotCommand("inspect", stats.inspect, "operators"),
        BotCommand("deadletters", letters.show, "operators", letters_buttons),
        BotCommand("clear_memory", clear.ask, "operators", {"admin": clear.start}),
    )


def _access_commands(
    memory: Memory, strangers: Strangers, sentences: Sentences, me: BotIdentity
) -> tuple[BotCommand, ...]:
    """Return what lets people in and out, for the operators of the bot alone."""
    people = PeopleList(memory, strangers, sentences)
    mode = strangers.admission.mode
    invite = InviteCommand(memory.invitations, me.username, mode, sentences)
    people_buttons = {"let_in": people.let_in, "refuse": people.refuse, people.verb: people.press}
    return (
        BotCommand("people", people.show, "operators", people_buttons),
        BotCommand("invite", invite.answer, "operators", {invite.verb: invite.list.press}),
    )
