"""Measures how much of the labelled evidence stands in the memory section of a prompt.

    python -m tests.lab.context DIR [DIR ...]

For each question of the conversations in DIR (see `conversations`), the product stores, searches
and packs, as in a turn whose window shows nothing of the conversation and whose behaviors tell
nothing. The output is a JSON list with three entries for each folder: with the tokens that recalled
messages get at the default settings, with 700 and with 1,100.

`evidence`: mean share of the labelled messages that have a line in the section. `complete`: share
of the questions for which all of them have one. `answer_words`: share of the content words of the
answer that stand in the section. `used_tokens`: mean tokens of the recalled lines. All but the last
are in percent.
"""

import asyncio
import json
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

from bot.assistant import assistant_of
from bot.behaviors import behaviors_of
from bot.prompt.assemble import recall_tokens
from bot.prompt.recalled import RecallPacker
from config.settings import Settings
from memory.behaviors.context import AgentContext
from memory.memory import Memory
from memory.search.words import FUNCTION_WORDS, languages_of, terms_of, words_of
from memory.store.client import RedisClient
from memory.text.tokens import TokenCounter
from tests.lab.conversations import Labelled, Question, read_folder
from tests.lab.recall import OPTIONS, ReadyVectors, percent, stored
from tests.lab.scripted_models import ScriptedChatModel, ScriptedInternalModel, Tape
from tests.valkey import ValkeyServer

SETTINGS = Settings(_env_file=None)
LIMITS = (700, 1_100)
DAY_S = 86_400

Shares = Mapping[str, list[float]]
"""The shares of all questions, by the name of a figure or by category."""


def default_tokens(memory: Memory) -> int:
    """Return how many tokens recalled messages get at most with the default settings."""
    tape = Tape(time.time)
    behaviors = behaviors_of(SETTINGS, memory, ScriptedInternalModel(tape, 0))
    assistant = assistant_of(SETTINGS, memory.tokens, ScriptedChatModel(tape, 0), behaviors)
    empty = AgentContext(None, None, 0)  # type: ignore[arg-type]  # only its texts are read
    fixed = assistant.prompt(empty).tokens
    return recall_tokens(
        SETTINGS.prompt_tokens - SETTINGS.reply_tokens - fixed.system - fixed.tools
    )


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
    """Return the figures of one folder, one entry for each number of tokens."""
    client = await RedisClient.open(redis)
    tokens = await TokenCounter.load()
    packer = RecallPacker(tokens, UTC)
    entries: list[tuple[int, Shares, Shares]] = []
    for labelled in read_folder(folder):
        embedder = ReadyVectors()
        memory = Memory(client, 1, tokens, embedder, OPTIONS)
        limits = (default_tokens(memory), *LIMITS)
        entries = entries or [(each, defaultdict(list), defaultdict(list)) for each in limits]
        history = await stored(memory, embedder, labelled)
        now = labelled.messages[-1].sent_at + DAY_S
        context = AgentContext(history.conversation, history, now)
        for question in labelled.questions:
            found = await history.search(question.text, SETTINGS.recall_k)
            for limit, figures, categories in entries:
                lines = packer.pack(context, found, question.text, limit)
                for name, value in shares(labelled, question, lines).items():
                    figures[name].append(value)
                used = sum(tokens.count(f"{line}\n") for line in lines.values())
                figures["used_tokens"].append(used)
                categories[question.category].append(figures["evidence"][-1])
    await client.close()
    return [described(folder, *entry) for entry in entries]


def described(
    folder: Path,
    limit: int,
    figures: Shares,
    categories: Shares,
) -> dict[str, object]:
    """Return one entry of the output."""
    entry: dict[str, Any] = {"dir": str(folder), "questions": len(figures["evidence"])}
    entry["tokens"] = limit
    entry |= {name: percent(figures[name]) for name in ("evidence", "complete", "answer_words")}
    entry["by_category"] = {name: percent(each) for name, each in sorted(categories.items())}
    entry["used_tokens"] = round(percent(figures["used_tokens"]) / 100)
    return entry


def main(folders: Sequence[str]) -> None:
    """Measure each folder on a new Valkey."""
    entries = []
    for folder in folders:
        with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
            entries += asyncio.run(measure(Path(folder), server.url))
    sys.stdout.write(json.dumps(entries, indent=1) + "\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
