"""Measures what whole prompts show of made-up talks with labelled questions.

    python -m tests.lab.talks FILE

FILE is a `talks.json`: a list of talks, each with `messages`, `questions`, `facts` and `now`. The
product stores the messages, and each question is asked alone at `now`, with the default settings
and without vectors. Its prompt is the one that a turn would send. Nothing is stored in between.

The output is one JSON object a line: one for each category, one for all questions without small
talk ("all"), and one for small talk ("small_talk"). All but `tokens` are in percent.

`shown`: mean share of the wanted messages that stand in the prompt, in the window or recalled.
`complete`: share of the questions of which every wanted message does. `tokens`: mean tokens of the
memory section. These three are measured with nothing but messages stored. `stale_alone` is measured
with the file's facts: the share of the questions with outdated messages of which one stands in the
prompt, not every wanted message does, and neither its line nor the next says what came after it. It
is null for a category without such questions.
"""

import asyncio
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bot.prompt.assemble import Prompt
from bot.telegram.updates import IncomingMessage, Sender
from bot.turn.load import Assistant, ContextLoader
from bot.turn.request import Request
from memory.memory import Memory
from memory.message import Message
from memory.scopes.changes import Write
from memory.scopes.entries import Ended, Fact
from memory.scopes.history import ChatHistory
from memory.scopes.sources import Source
from memory.search.words import words_of
from memory.store.client import RedisClient
from memory.store.keys import Scope
from memory.text.tokens import TokenCounter
from tests.lab.context import SETTINGS, default_assistant
from tests.lab.recall import OPTIONS, append_all
from tests.lab.simulated_time import SimulatedClock, simulated
from tests.quiet_chat import QuietChat
from tests.valkey import ValkeyServer

SMALL_TALK = "small talk"
FIRST_PERSON, GROUP = 1_001, -1_000
MEASURES = ("shown", "complete", "stale_alone", "tokens")

Figures = dict[str, float | None]
"""The figures of one question, each 0 to 1 or a number of tokens; None: it has no such figure."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, by whom, and after which question; which messages are wanted or outdated."""

    category: str
    question: str
    who: str
    before: str
    want: Sequence[Sequence[str]]
    stale: Sequence[str]


class Talk:
    """One talk of the file, and the scope that it is stored in."""

    def __init__(self, described: Mapping[str, Any], number: int) -> None:
        said = described["messages"]
        names = dict.fromkeys(each["who"] for each in said if each["who"] != "assistant")
        self.people = {name: FIRST_PERSON + 100 * number + at for at, name in enumerate(names)}
        is_group = described["kind"] == "group"
        self.chat_id = GROUP - number if is_group else next(iter(self.people.values()))
        self.scope = Scope.of_chat(self.chat_id)
        self.now = seconds(described["now"])
        self.messages = [self._message(each) for each in said]
        self.seqs = {each["id"]: seq for seq, each in enumerate(said, 1)}
        self.questions = [Question(**each) for each in described["questions"]]
        self.facts: Sequence[Mapping[str, Any]] = described["facts"]

    def _message(self, said: Mapping[str, Any]) -> Message:
        who, at = said["who"], seconds(said["at"])
        if who == "assistant":
            return Message(0, 0, "assistant", said["text"], at)
        return Message(0, 0, "user", said["text"], at, self.people[who], who)

    def asked(self, question: Question) -> Request:
        """Return the request of a turn that answers a question."""
        sender = Sender(self.people[question.who], question.who, question.who)
        return request_of(sender, question.question, self.now, self.chat_id)

    def successors(self, stale: str) -> list[str]:
        """Return the facts that came after those that rest on a message, the next ones first."""
        after = {fact["ends"]: at for at, fact in enumerate(self.facts) if fact["ends"] is not None}
        found = []
        for at, fact in enumerate(self.facts):
            if self.seqs[stale] in fact["messages"]:
                while (at := after.get(at, -1)) >= 0:
                    found.append(self.facts[at]["text"])
        return found


def request_of(sender: Sender, text: str, now: float, chat_id: int) -> Request:
    """Return the request of a turn that answers one text."""
    update = IncomingMessage(1, chat_id, 0, chat_id < 0, 1, int(now), sender, "text", text)
    message = Message(0, 0, "user", text, now, sender.id, sender.name)
    return Request((update,), message, (message,))


class AskedAfter(ChatHistory):
    """A history whose person has just asked something else, which is not stored."""

    before: Message | None = None

    @property
    def messages(self) -> Sequence[Message]:
        """The messages, and after them what was asked before."""
        return (*super().messages, *([self.before] if self.before else ()))


def seconds(iso: str) -> float:
    """Return a time of the file in Unix seconds."""
    return datetime.fromisoformat(iso).replace(tzinfo=UTC).timestamp()


async def store(memory: Memory, talk: Talk) -> None:
    counted = [replace(each, tokens=memory.tokens.count(each.text)) for each in talk.messages]
    await append_all(memory, talk.scope, counted)


async def learn(memory: Memory, talk: Talk) -> None:
    """Store the facts of a talk as they are in the file."""
    here = await memory.scopes.read(talk.scope)
    told = await memory.scopes.read(talk.scope.facts_scope)
    facts = [
        Fact(
            0,
            fact["text"],
            tuple(
                Source(talk.scope.tag, n, here.source_epoch, talk.messages[n - 1].sender_id)
                for n in fact["messages"]
            ),
            seconds(fact["said_at"]),
        )
        for fact in talk.facts
    ]
    await memory.scopes.write(told, Write(facts))
    told = await memory.scopes.read(talk.scope.facts_scope)
    ids = [fact.id for fact in told.facts]
    ends = [
        Ended(ids[fact["ends"]], seconds(fact["said_at"]), ids[at])
        for at, fact in enumerate(talk.facts)
        if fact["ends"] is not None
    ]
    await memory.scopes.write(told, Write(ends))


def shown_ids(talk: Talk, prompt: Prompt) -> set[str]:
    """Return the ids of the messages that stand in a prompt, in the window or recalled."""
    recalled = {int(code.strip("m~")) for code in prompt.used if re.fullmatch(r"m\d+~?", code)}
    window = "\n".join(each.content for each in prompt.messages[1:-1])
    return {
        name
        for name, seq in talk.seqs.items()
        if seq in recalled or talk.messages[seq - 1].text in window
    }


def memory_lines(prompt: Prompt) -> list[str]:
    """Return the lines of the memory section, without its frame; none without a section."""
    content = prompt.messages[-1].content
    if not content.startswith("<memory>\n"):
        return []
    return content[len("<memory>\n") : content.index("</memory>")].splitlines()


def wanted_shares(question: Question, shown: AbstractSet[str]) -> float:
    return sum(not shown.isdisjoint(each) for each in map(set, question.want)) / len(question.want)


def is_stale_alone(talk: Talk, question: Question, prompt: Prompt) -> bool:
    """Return whether an outdated message stands alone, and nothing says what came after it."""
    shown, lines = shown_ids(talk, prompt), memory_lines(prompt)
    if wanted_shares(question, shown) == 1:
        return False
    for stale in shown.intersection(question.stale):
        words = set(words_of(talk.messages[talk.seqs[stale] - 1].text))
        at = max(range(len(lines)), key=lambda n: len(words & set(words_of(lines[n]))), default=0)
        near = " ".join(lines[at : at + 2])
        if not any(after in near for after in talk.successors(stale)):
            return True
    return False


async def prompt_of(assistant: Assistant, memory: Memory, talk: Talk, question: Question) -> Prompt:
    """Return the prompt of a turn that answers a question."""
    history = await AskedAfter.read(memory.histories, talk.scope)
    assert isinstance(history, AskedAfter)
    if question.before:
        sender_id = talk.people[question.who]
        history.before = Message(0, 0, "user", question.before, talk.now, sender_id, question.who)
    loader = ContextLoader(assistant, QuietChat(), SETTINGS.recall_k)
    return assistant.prompt(await loader.load(talk.asked(question), history))


async def measure_talk(memory: Memory, talk: Talk) -> list[Figures]:
    assistant = default_assistant(memory)
    await store(memory, talk)
    measured: list[Figures] = []
    for question in talk.questions:
        prompt = await prompt_of(assistant, memory, talk, question)
        lines = memory_lines(prompt)
        section = "\n".join(("<memory>", *lines, "</memory>"))
        figures: Figures = {"tokens": memory.tokens.count(section) if lines else 0}
        share = wanted_shares(question, shown_ids(talk, prompt)) if question.want else None
        figures["shown"] = share
        figures["complete"] = None if share is None else float(share == 1)
        measured.append(figures)
    await learn(memory, talk)
    for question, figures in zip(talk.questions, measured, strict=True):
        figures["stale_alone"] = None
        if question.stale:
            prompt = await prompt_of(assistant, memory, talk, question)
            figures["stale_alone"] = float(is_stale_alone(talk, question, prompt))
    return measured


def row(category: str, figures: Sequence[Figures]) -> dict[str, object]:
    return {
        "category": category,
        "questions": len(figures),
        **{name: mean(each[name] for each in figures) for name in MEASURES[:-1]},
        "tokens": round((mean(each["tokens"] for each in figures) or 0) / 100),
    }


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean in percent, None without values."""
    known = [value for value in values if value is not None]
    return round(100 * sum(known) / len(known), 1) if known else None


async def measure(talks: Sequence[Mapping[str, Any]], redis: str) -> list[dict[str, object]]:
    client = await RedisClient.open(redis)
    tokens = await TokenCounter.load()
    by_category: dict[str, list[Figures]] = defaultdict(list)
    for number, described in enumerate(talks):
        talk = Talk(described, number)
        memory = Memory(client, 1, tokens, None, OPTIONS)
        with simulated(SimulatedClock(talk.now)):
            for question, each in zip(
                talk.questions, await measure_talk(memory, talk), strict=True
            ):
                by_category[question.category].append(each)
    await client.close()
    small = by_category.pop(SMALL_TALK, [])
    rows = [row(category, figures) for category, figures in by_category.items()]
    everything = [each for figures in by_category.values() for each in figures]
    return [*rows, row("all", everything), row("small_talk", small)]


def main(file: str) -> None:
    """Measure a file on a new Valkey."""
    with tempfile.TemporaryDirectory() as scratch, ValkeyServer(Path(scratch)) as server:
        talks = json.loads(Path(file).read_text(encoding="utf-8"))
        for each in asyncio.run(measure(talks, server.url)):
            sys.stdout.write(json.dumps(each) + "\n")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
