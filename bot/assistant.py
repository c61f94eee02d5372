"""Builds what answers people: the behaviors, the agent, the commands, and the worker of turns."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

from bot.agent.agent import FunctionsBasedAgent, RunAgent, Toolbox, ToolLimits, run_agent
from bot.agent.search_memory import search_memory_tool
from bot.commands.bot_command import Handler
from bot.commands.command_set import CommandSet
from bot.commands.erasing import Deleting, ErasingCommands, Receipts
from bot.commands.general import GeneralCommands, RetryCommand
from bot.commands.immediate import stop_command
from bot.feature import Services
from bot.operator_classes import (
    agents_of,
    built_behaviors,
    domain_of,
    refuse_doubled,
    replaced_by,
    selector_of,
)
from bot.prompt.assemble import PromptAssembler, PromptBudget, load_system_prompt
from bot.turn.agent_step import AgentStep
from bot.turn.answer import Answerer, CommandStep, FileSteps
from bot.turn.deliver import Deliverer
from bot.turn.load import Assistant, ContextLoader
from bot.turn.observers import FieldsRefused
from bot.turn.permits import MAX_TURNS_PER_PERSON, Permits, QuotaStep
from bot.turn.revision import RevisionStep
from bot.turn.turn import GiveUp, TurnRunner
from bot.turn.worker import MAX_CONCURRENT_TURNS, TurnWorker
from memory.behaviors.behavior import AIContextBehavior, AIContextBehaviorManager
from memory.behaviors.context import AgentContext
from memory.behaviors.learning_behavior import Cadence
from memory.behaviors.running_state import RunningState
from memory.behaviors.steps import FinishAction
from memory.behaviors.synopses import Synopses
from memory.behaviors.user_facts import UserFacts
from memory.store.keys import Scope

_BATCH_TOKENS = 3_000
_TIME_LIMIT_S = 8.0
"""For one hook of one behavior. The narrative inside a hook has a limit of its own."""
_OUTPUT_SHARE = 4  # one tool output takes at most a quarter of the prompt


def behaviors_of(services: Services) -> AIContextBehaviorManager:
    """Return the bot's behaviors in the order of the prompt, those of features last.

    Raise `UnusableClass`, or `FunctionNameClash` if two tools of behaviors have one name.
    """
    settings, features, model = services.settings, services.features, services.models.internal
    scopes, tokens = services.memory.scopes, services.memory.tokens
    cadence = Cadence(  # before the window drops messages that are not learned
        every_turns=max(1, min(settings.learn_every_turns, settings.window_messages // 4)),
        after_s=settings.learn_after_s,
        max_tokens=min(_BATCH_TOKENS, settings.window_tokens // 2),
    )
    domain = domain_of(replaced_by(features).knowledge_base)
    observe = services.observe
    state = RunningState(scopes, domain, cadence, lambda source: observe(FieldsRefused(source)))
    kinds: dict[str, AIContextBehavior] = {
        "state": state,
        "facts": UserFacts(scopes, tokens, cadence),
        "synopses": Synopses(scopes, tokens, model, settings.recall_narrative),
    }
    ours = [behavior for kind, behavior in kinds.items() if kind in settings.learn]
    knowledge_base = state.model if "state" in settings.learn else None
    theirs = built_behaviors(settings.behaviors, scopes, knowledge_base)
    theirs += [behavior for feature in features for behavior in feature.behaviors]
    # Two with one name would share their stored data. Those with the default name store nothing.
    names = [each.name for each in (*kinds.values(), *theirs)]
    named = [name for name in names if name != AIContextBehavior.name]
    refuse_doubled("behaviors", named, "BEHAVIORS, FEATURES")
    return AIContextBehaviorManager([*ours, *theirs], _TIME_LIMIT_S)


def assistant_of(services: Services, behaviors: AIContextBehaviorManager) -> Assistant:
    """Return the assistant, with what features put in the place of ours; the first model answers.

    If some behaviors do not run everywhere, each set of behaviors gets its own prompt and tools.
    Raise `UnusableSystemPrompt`, `UnusableClass`, or `FunctionNameClash` if two tools have the
    same name.
    """

    @cache
    def made(here: tuple[AIContextBehavior, ...]) -> Assistant:
        return _assistant_with(services, AIContextBehaviorManager(here, _TIME_LIMIT_S), within)

    def within(conversation: Scope) -> Assistant:
        return made(behaviors.within(conversation))

    return made(behaviors.behaviors)


def _assistant_with(
    services: Services, behaviors: AIContextBehaviorManager, within: Callable[[Scope], Assistant]
) -> Assistant:
    settings, tokens, features = services.settings, services.memory.tokens, services.features
    replaced, model = replaced_by(features), services.models.chats[0]
    search_memory = search_memory_tool(tokens, behaviors.behaviors)
    tools_of_features = [tool for feature in features for tool in feature.tools]
    max_output_tokens = settings.prompt_tokens // _OUTPUT_SHARE
    limits = ToolLimits(settings.max_calls_per_tool, settings.tool_timeout_s, max_output_tokens)
    all_tools = (*tools_of_features, search_memory, *behaviors.functions)
    toolbox = Toolbox(all_tools, limits, tokens)

    def system_from(path: Path | None) -> str:
        return "\n\n".join(filter(None, (load_system_prompt(path), behaviors.instructions)))

    budget = PromptBudget(settings.prompt_tokens, settings.reply_tokens, behaviors.leading)
    system = system_from(settings.system_prompt_file)
    assembler = PromptAssembler(tokens, system, toolbox.definitions, budget)
    services.system_prompts.append(lambda path: assembler.use_system(system_from(path)))

    assemble, names_people = assembler.assemble, settings.openai_safety_identifier == "on"
    ours = FunctionsBasedAgent(
        model, assemble, toolbox.definitions, settings.max_steps, settings.bot_id, names_people
    )
    turns_agent = agents_of(settings, ours, replaced.agent)

    def answer(context: AgentContext) -> Awaitable[FinishAction]:
        return run_agent(turns_agent(), toolbox, context)

    run: RunAgent = answer
    for feature in features:
        for put_around in feature.around:
            run = put_around(run)
    selector = selector_of(settings, replaced.selector)
    return Assistant(run, toolbox.run, assemble, assembler.showable, selector, behaviors, within)


def build_commands(services: Services, deleting: Deleting) -> CommandSet:
    """Return our commands and those of features.

    Raise `UnusableClass` if two commands, buttons or kinds of arrival have one name.
    """
    memory, chat, features = services.memory, services.chat, services.features
    sentences, access = services.sentences, services.access
    ways = [way for feature in features for way in feature.ways]
    erasing = ErasingCommands(memory, deleting, Receipts(memory.jobs, chat, sentences), sentences)
    others = [
        stop_command(sentences),
        RetryCommand(memory, access, sentences).command,
        services.edits.command,
        *erasing.commands,
        *(command for feature in features for command in feature.commands),
    ]
    listed = GeneralCommands(services.me(), memory, access, ways, sentences, others).listed
    of_features = [each.buttons for each in features]
    several = [*(each.buttons for each in listed), *of_features]
    refuse_doubled("commands", (command.name for command in listed))
    refuse_doubled("buttons", (verb for each in several for verb in each))
    refuse_doubled("arrivals", (kind.__name__ for each in features for kind in each.arrivals))
    return CommandSet(listed, of_features, access, sentences)


def turn_worker(services: Services, assistant: Assistant, commands: Handler) -> TurnWorker:
    """Return the worker for all turns."""
    settings, memory, features = services.settings, services.memory, services.features
    chat, sentences, observe = services.chat, services.sentences, services.observe
    permits = Permits(MAX_TURNS_PER_PERSON, memory.mailbox.wake)
    drafts = [each.draft_of for each in features if each.draft_of]
    drafting = replace(services.at_work, draft_of=drafts[-1]) if drafts else services.at_work
    quota = QuotaStep(services.budget, sentences)
    agent = AgentStep(
        ContextLoader(assistant, chat, settings.recall_k),
        sentences,
        drafting,
        observe,
        memory.questions,
        [note for feature in features for note in feature.notes],
        [finish for feature in features for finish in feature.finishes],
        any(feature.sends_rich for feature in features),
    )
    file_steps = [each for feature in features for each in feature.file_steps.items()]
    steps = [  # the first one with an answer gives it
        RevisionStep(memory, chat, quota, sentences, services.learn).answer,
        CommandStep(commands, sentences, services.admission).answer,
        quota.answer,
        FileSteps(file_steps, permits, services.files, services.at_work, sentences).answer,
        *(step for feature in features for step in feature.steps),
        agent.answer,
    ]
    turn = TurnRunner(
        memory.turns,
        memory.histories,
        Answerer(steps, sentences, observe),
        GiveUp(memory.dead_letters, sentences, observe).give_up,
        Deliverer(chat, settings.send_timeout_s, memory.exporter.export, observe),
        assistant.behaviors,
        services.learn,
        observe,
        memory.work,
    )
    ready, turns, histories = memory.ready_queue(), memory.turns, memory.histories
    return TurnWorker(ready, turns, histories, permits, turn.run, MAX_CONCURRENT_TURNS)
