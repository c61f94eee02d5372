"""`Feature`: what one folder adds to the bot. Features of an operator are made in the same way."""

import argparse
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from pydantic import BaseModel
from starlette.routing import BaseRoute

from bot.agent.agent import RunAgent
from bot.commands.access import Access, Operators
from bot.commands.bot_command import BotCommand, ButtonHandler, MemoryLine, MemoryWords, PrivacyPart
from bot.commands.fact_edits import FactEdits
from bot.commands.immediate import Act
from bot.commands.notices import OperatorNotices
from bot.commands.sentences import Sentences
from bot.costs import Budget
from bot.model.models import Models
from bot.prompt.assemble import UseSystemPrompt
from bot.telegram.admission import Admission, Members
from bot.telegram.bot_api import BotIdentity
from bot.telegram.chat import Chat
from bot.telegram.connection import TelegramHealth
from bot.telegram.updates import IncomingMessage, MediaKind
from bot.turn.answer import AnswerStep, DraftOf, FileFetcher, TypingIndicator
from bot.turn.notes import Finish, Note
from bot.turn.observers import Observer
from bot.turn.outbox import Outbox
from config.settings import Settings
from memory.behaviors.behavior import AIContextBehavior
from memory.behaviors.context import CallContext
from memory.behaviors.tool import Tool
from memory.documents import Chunk
from memory.erasure.export import ExportPart
from memory.erasure.jobs import Job
from memory.memory import Memory
from memory.store.keys import Scope
from memory.work.item import WorkItem

S = TypeVar("S", bound=Settings)
Subcommands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001
"""The commands of `python -m bot`, to which the `command_line.py` of a feature adds its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacements:
    """What stands in the place of ours; docs/features.md has an example of each.

    If the constructor of a class requires an argument, it gets our selector or our agent.
    """

    selector: type[Any] | None = None  # selects the messages of the window
    agent: type[Any] | None = None  # decides on the next step of an answer
    knowledge_base: type[BaseModel] | None = None  # further fields of the running state
    document_prompt: str = ""  # what the model is to do with passages
    document_tool_prompt: str = ""  # what `search_documents` is for
    document_passage: Callable[[Chunk], str] | None = None  # shows one passage with its source


@dataclass(frozen=True, slots=True)
class Services:
    """The services from which features and commands are built, once, at the start.

    A feature gives each of its classes only the two or three services that it uses.
    """

    settings: Settings  # of the whole bot; `own` returns those of the feature
    memory: Memory  # all that is stored
    chat: Chat  # sends, edits, deletes and downloads
    sentences: Sentences  # says a fixed sentence in a person's language
    models: Models  # for chats, internal calls, vectors and sounds
    admission: Admission  # whether a person or a group may use the bot at all
    access: Access  # whether somebody who may, may use a command or change a memory
    budget: Budget  # prices, what the month may cost, and the quota of a person
    at_work: TypingIndicator  # shows "typing" while a slow step runs
    files: FileFetcher  # fetches a file that a message brings
    notices: OperatorNotices  # tells every operator something
    edits: FactEdits  # asks for other words of a fact or a message, and takes them
    learn: Callable[[Scope], None] = lambda _: None  # starts learning from a conversation
    observe: Observer = lambda _: None  # tells all observers of a step
    env_file: str = ""  # the file that a reload reads; "" in the playground, which has none
    me: Callable[[], BotIdentity] = TelegramHealth().account  # our account, once the bot serves
    name_of: Callable[[Scope], str] = str  # a name of a conversation that does not reveal its id
    takes_in: bool = True  # whether this process takes updates in
    works: bool = True  # whether this process runs turns and learns
    closing: ExitStack = field(default_factory=ExitStack)  # closes at the end what is entered
    replaced: Replacements = Replacements()  # what all features of the operator replace
    features: "list[Feature]" = field(default_factory=list)  # that are on; filled when all are made
    system_prompts: list[UseSystemPrompt] = field(default_factory=list)  # of all sets of behaviors

    @classmethod
    def of(
        cls, settings: Settings, memory: Memory, chat: Chat, sentences: Sentences, models: Models
    ) -> "Services":
        """Return the services of one bot."""
        operators = Operators(memory.store, settings)
        access = Access(chat, sentences, operators, memory.store)
        return cls(
            settings=settings,
            memory=memory,
            chat=chat,
            sentences=sentences,
            models=models,
            admission=Admission(settings, Members(memory.store)),
            access=access,
            budget=Budget(settings, memory.usage, memory.quotas),
            at_work=TypingIndicator(chat, settings.turn_timeout_s),
            files=FileFetcher(chat, memory.scopes),
            notices=OperatorNotices(operators, chat, sentences),
            edits=FactEdits(memory, access, chat, sentences),
        )

    def own(self, kind: type[S]) -> S:
        """Return the settings as those of `kind`; raise `TypeError` if these are not loaded."""
        if not isinstance(self.settings, kind):
            raise TypeError(kind.__module__)
        return self.settings


class Work(Protocol):
    """One kind of work, made by a feature."""

    kind: str

    async def message(self, item: WorkItem) -> Outbox | IncomingMessage | None:
        """Return what is sent when an item is due, or the message that a turn is to answer.

        None sends nothing, and the item is done. If the item is not open, nobody pressed its button
        in time. If its topic is gone, `topic_id` is negative: the chat itself gets what is
        returned, and the item ends. Raise `StoreError`.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """What one folder adds to the bot; built once, by its function `feature(services)`.

    `learned` returns False if it has left something undone, and is then called again. `erasing` is
    called before a conversation is erased.
    Sentences of our own features stand in `bot/language`, because a translator wants one file.
    """

    name: str  # unique; ours have the names of their folders
    commands: Sequence[BotCommand] = ()  # menus have the order of the table `commands`
    buttons: Mapping[str, ButtonHandler] = field(default_factory=dict)  # of no command, by verb
    switches: Sequence[MemoryWords] = ()  # settings of memory: words behind `/memory`
    arrivals: Mapping[type[Any], Act] = field(default_factory=dict)  # done at intake
    file_steps: Mapping[MediaKind, AnswerStep] = field(default_factory=dict)  # read such a file
    steps: Sequence[AnswerStep] = ()  # run for each message, after its files were read
    tools: Sequence[Tool[Any]] = ()  # of the model, before `search_memory`
    behaviors: Sequence[AIContextBehavior] = ()  # with their tools, in the order of the prompt
    around: Sequence[Callable[[RunAgent], RunAgent]] = ()  # put around the agent's run
    draft_of: DraftOf | None = None  # shows a reply while it is written
    notes: Sequence[Note] = ()  # lines and questions below answers of the agent
    finishes: Sequence[Finish] = ()  # change an answer before it is stored
    work: Sequence[Work] = ()  # what it does when its work items are due
    tasks: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()  # run in web and in worker
    learned: Sequence[Callable[[Scope], Awaitable[bool]]] = ()  # called after learning
    erasing: Sequence[Callable[[CallContext], Awaitable[None]]] = ()  # called before erasing
    forgets: Sequence[Callable[[Job], Awaitable[None]]] = ()  # erases what is outside of scopes
    observers: Sequence[Observer] = ()  # of steps and of calls to models
    routes: Sequence[BaseRoute] = ()  # web pages
    ways: Sequence[str] = ()  # what people can send beside text: keys in the table `start`
    privacy: Sequence[PrivacyPart] = ()  # what `/privacy` says and asks of it
    memory_lines: Sequence[MemoryLine] = ()  # what `/memory` says below its list
    exports: Sequence[ExportPart] = ()  # what `/export` shows of what it stores
    shows_message: str = ""  # the verb of a button that shows a message, by its sequence
    sends_rich: bool = False  # tables and block formulas go out as rich messages
    says_unasked: bool = False  # sends what nobody asked for: `/mute` is of use, and stops `work`
    # Of a feature of an operator, by language and key, English at least; ours: `bot/language`.
    sentences: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    replaces: Replacements = Replacements()
