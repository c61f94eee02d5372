"""Measures how much of the labelled evidence stands in the memory section of a prompt.

    python -m tests.lab.context DIR [DIR ...]

For each question of the conversations in DIR (see `conversations`), the product stores, searches
and packs, as in a turn whose window shows nothing of the conversation and whose behaviors tell
nothing. The output is a JSON list with six entries for each folder: with the tokens that recalled
messages get at the default settings if the window is full, with 700 and with 1,100; and three with
`prompt`, for whole prompts that the assembler makes with the default settings and an empty window.

`prompt` says what the behaviors tell: nothing (`silent`), or as much as the product lets them have
of the next conversation of the folder (`learned`) or of the same one (`own`). Only recalled lines
count as evidence.

`evidence`: mean share of the labelled messages that have a line in the section. `complete`: share
of the questions for which all of them have one. `answer_words`: share of the content words of the
answer that stand in the section. `used_tokens`: mean tokens of the recalled lines. All but the last
are in percent.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from bot.assistant import assistant_of, behaviors_of
from bot.prompt import memory_context
from bot.prompt.assemble import MEMORY_SHARE
from bot.prompt.memory_context import RecallPacker, with_dates
from bot.turn.load import Assistant
from memory.behaviors.context import AgentContext, Background, CallContext, Person
from memory.behaviors.running_state import HEADING as STATE
from memory.behaviors.synopses import HEADING as SYNOPSES
from memory.behaviors.user_facts import HEADING as FACTS
from memory.memory import Memory
from memory.message import Message
from memory.scopes.history import ChatHistory
from memory.search.message_search import SearchResult
from memory.search.words import FUNCTION_WORDS, languages_of, terms_of, words_of
from memory.store.client import RedisClient
from memory.text.message_lines import dated
from memory.text.tokens import TokenCounter
from tests.bot.features.services import models_of, services_of
from tests.lab.conversations import Labelled, Question, read_folder
from tests.lab.recall import OPTIONS, ReadyVectors, percent, stored
from tests.lab.scripted_models import ScriptedChatModel, ScriptedInternalModel, Tape
from tests.settings import Settings
from tests.valkey import ValkeyServer

SETTINGS = Settings(_env_file=None)
LIMITS = (700, 1_100)
PROMPTS = ("silent", "learned", "own")
SUMMARY_TOKENS, ENTITIES, PROBLEMS = 130, 6, 3
FACTS_TOLD, FACT_TOKENS = 8, 18
SYNOPSES_TOLD, SYNOPSIS_TOKENS = 4, 140
DAY_S = 86_400
_MAX_KEPT = 20_000
KEPT = ("words_of", "content_forms")
"""Functions that read each text once here, because most questions find the same messages."""

Shares = Mapping[str, list[float]]
"""The shares of all questions, by the name of a figure or by category."""


class KeepingCounter(TokenCounter):
    """A counter that counts each text once: all prompts of a question show the same lines."""

    _counts: ClassVar[dict[str, int]] = {}

    def count(self, text: str) -> int:
        """Return the number of tokens, from an earlier count if there is one."""
        if len(self._counts) > _MAX_KEPT:
            self._counts.clear()
        if text not in self._counts:
            self._counts[text] = super().count(text)
        return self._counts[text]


def default_assistant(memory: Memory) -> Assistant:
    """Return the assistant with the default settings and models that are never asked."""
    tape = Tape(time.time)
    models = models_of(ScriptedInternalModel(tape, 0), ScriptedChatModel(tape, 0))
    services = services_of(memory, SETTINGS, models=models)
    return assistant_of(services, behaviors_of(services))


def default_tokens(assistant: Assistant) -> int:
    """Return how many tokens recalled messages get at the default settings beside a full window."""
    nobody = CallContext(None, Person(), 0)  # type: ignore[arg-type]  # only its texts are read
    empty = AgentContext(nobody, None)  # type: ignore[arg-type]
    sizes = assistant.prompt(empty).sizes
    fixed = sizes["system"] + sizes["tools"]
    room = SETTINGS.prompt_tokens - SETTINGS.reply_tokens - fixed
    return int(room * MEMORY_SHARE)


def learned_lines(labelled: Labelled, tokens: TokenCounter, now: float) -> list[list[str]]:
    """Return what behaviors tell of a conversation: the lines of each kind under their heading."""
    said = [each for each in labelled.messages if each.role == "user"]

    def told(count: int, limit: int, at_once: int) -> list[tuple[str, str]]:
        """Return days and texts of up to `limit` tokens from the whole conversation."""
        starts = [len(said) * number // count for number in range(count)]
        chosen = [said[start : start + at_once] for start in starts]
        return [(dated(each[0].sent_at, now, UTC), cut_to(tokens, each, limit)) for each in chosen]

    text = " ".join(each.text for each in said)
    names = [name for name, _ in Counter(re.findall(r"(?<=\w )[A-Z][a-z]{2,}", text)).most_common()]
    state = {
        "discussion_summary": cut_to(tokens, said[-20:], SUMMARY_TOKENS),
        "key_entities": names[:ENTITIES],
        "open_problems": [problem for _, problem in told(PROBLEMS, FACT_TOKENS, 1)],
    }
    facts = [
        f"#{number} [{day}] {fact}"
        for number, (day, fact) in enumerate(told(FACTS_TOLD, FACT_TOKENS, 1), 1)
    ]
    synopses = [f"[{day}] {each}" for day, each in told(SYNOPSES_TOLD, SYNOPSIS_TOKENS, 20)]
    return [[STATE, json.dumps(state)], [FACTS, *facts], [SYNOPSES, *synopses]]


def cut_to(tokens: TokenCounter, messages: Sequence[Message], limit: int) -> str:
    """Return the words of messages, on one line of at most `limit` tokens."""
    text = " ".join(word for each in messages for word in each.text.split())
    return tokens.shorten(text, limit)


def whole_prompt(
    assistant: Assistant,
    history: ChatHistory,
    found: Sequence[SearchResult],
    question: str,
    told: tuple[float, Sequence[Sequence[str]]],
) -> set[int]:
    """Return the sequences of the recalled messages that a whole prompt shows.

    `told` has the time of the question, and what behaviors tell by kind.
    """
    now, kinds = told
    call_context = CallContext(history.conversation, Person(), now, query=question)
    for number, line in enumerate(line for kind in kinds for line in kind[1:]):
        call_context.used[f"told{number}"] = line
    context = AgentContext(
        call_context,
        history,
        user_message=Message(0, 0, "user", question, now),
        background=Background(
            recalled=tuple(found), memory_context="\n".join(line for kind in kinds for line in kind)
        ),
    )
    codes = assistant.prompt(context).used
    return {int(code.strip("m~")) for code in codes if re.fullmatch(r"m\d+~?", code)}


def content_terms(text: str) -> frozenset[str]:
    """Return the stems of a text without function words."""
    words = words_of(text)
    languages = languages_of(words, {})
    dropped = frozenset[str]().union(*(FUNCTION_WORDS.get(c, ()) for c in languages.values()))
    return frozenset(terms_of([word for word in words if word not in dropped], languages))


def shares(labelled: Labelled, question: Question, lines: Mapping[int, str]) -> dict[str, float]:
    """Return the shares of one question by name; `lines` are by sequence, which count from 1."""
    found = labelled.share(question, (seq - 1 for seq in lines))
    measured = {"evidence": found, "complete": float(found == 1)}
    if wanted := content_terms(question.answer) - content_terms(question.text):
        shown = content_terms("\n".join(lines.values()))
        measured["answer_words"] = len(wanted & shown) / len(wanted)
    return measured


async def measure(folder: Path, redis: str) -> list[dict[str, object]]:
    """Return the figures of one folder, one entry for each number of tokens and each prompt."""
    client = await RedisClient.open(redis)
    tokens = await KeepingCounter.load()
    for name in KEPT:
        vars(memory_context)[name] = lru_cache(_MAX_KEPT)(vars(memory_context)[name])
    packer = RecallPacker(tokens)
    entries: list[tuple[int, Shares, Shares]] = []
    prompts: dict[str, list[float]] = {name: [] for name in PROMPTS}
    conversations = read_folder(folder)
    for number, labelled in enumerate(conversations):
        embedder = ReadyVectors()
        memory = Memory(client, 1, tokens, embedder, OPTIONS)
        assistant = default_assistant(memory)
        limits = (default_tokens(assistant), *LIMITS)
        entries = entries or [(each, defaultdict(list), defaultdict(list)) for each in limits]
        history = await stored(memory, embedder, labelled)
        now = labelled.messages[-1].sent_at + DAY_S
        context = AgentContext(CallContext(history.conversation, Person(), now), history)
        following = conversations[(number + 1) % len(conversations)]
        told = {
            "silent": [],
            "learned": learned_lines(following, tokens, now),
            "own": learned_lines(labelled, tokens, now),
        }
        for question in labelled.questions:
            found = await history.search(question.text, SETTINGS.recall_k)
            for limit, figures, categories in entries:
                lines = with_dates(packer.ranked(context, found, question.text, limit))
                for name, value in shares(labelled, question, lines).items():
                    figures[name].append(value)
                used = sum(tokens.count(f"{line}\n") for line in lines.values())
                figures["used_tokens"].append(used)
                categories[question.category].append(figures["evidence"][-1])
            for name, kinds in told.items():
                seqs = whole_prompt(assistant, history, found, question.text, (now, kinds))
                prompts[name].append(labelled.share(question, (seq - 1 for seq in seqs)))
    await client.close()
    whole = [
        {"dir": str(folder), "prompt": name, "questions": len(each), "evidence": percent(each)}
        for name, each in prompts.items()
    ]
    return [*(described(folder, *entry) for entry in entries), *whole]


def described(folder: Path, limit: int, figures: Shares, categories: Shares) -> dict[str, object]:
    entry: dict[str, Any] = {"dir": str(folder), "questions": len(figures["evidence"])}
    entry["tokens"] = limit
    entry |= {name: percent(figures[name]) for name in ("evidence", "complete", "answer_words")}
    entry["by_category"] = {name: percent(each) for name, each in sorted(categories.items())}
    entry["used_tokens"] = round(percent(figures["used_tokens"]) / 100)
    return entry


def measured(name: str) -> list[dict[str, object]]:
    """Measure a folder on a new Valkey."""
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
        return asyncio.run(measure(Path(name), server.url))


def main(folders: Sequence[str]) -> None:
    """Measure all folders, two at the same time."""
    with ProcessPoolExecutor(2) as processes:
        entries = [entry for each in processes.map(measured, folders) for entry in each]
    sys.stdout.write(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
