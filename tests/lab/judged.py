"""Asks the whole bot labelled questions, end to end, and scores its answers.

    python -m tests.lab.judged DIR|FILE --out RESULTS [--yes] [--judge MODEL] [--parallel N]

DIR is a folder for `recall`, FILE a `talks.json`. The settings are those of the environment, as for
the bot. Messages are stored, the bot learns from what was answered, and each question is asked
alone, with the bot's own prompt and tools. A judge model compares each answer with the reference;
questions without one are left out. For a `talks.json` no model judges: an answer is right if it has
the names and numbers of each wanted message that are not in the question.

Without --yes it only announces tokens and cost. `PRICES` has the prices. With it, scores go to
RESULTS one by one. The same command goes on where it was ended; the store lies beside RESULTS. It
ends with one row for each category, in percent, and the tokens that the server billed.
"""

import argparse
import asyncio
import json
import logging
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import structlog
from pydantic import BaseModel, Field

from bot.agent.agent import MessageRefused
from bot.assistant import assistant_of, behaviors_of
from bot.costs import Prices
from bot.features import all_settings, open_features
from bot.model.call import CallReport
from bot.model.model_errors import ModelError
from bot.model.models import Models, open_models
from bot.model.structured import StructuredModel
from bot.telegram.updates import Sender
from bot.turn.load import Assistant, ContextLoader
from bot.turn.request import Request
from config.settings import Settings
from memory.limits.usage import BillingSource, Tokens
from memory.memory import Memory
from memory.message import Message
from memory.search.embeddings import EmbeddingsUnavailable
from memory.store.client import RedisClient
from memory.store.embedded import EmbeddedValkey
from memory.store.keys import Scope
from memory.text.internal_model import AnswerShape, InternalModelUnavailable
from memory.text.tokens import TokenCounter
from tests.bot.features.services import services_of
from tests.lab.conversations import read_folder
from tests.lab.recall import OPTIONS, append_all, exchanges
from tests.lab.simulated_time import SimulatedClock, simulated
from tests.lab.talks import AskedAfter, Talk, request_of
from tests.quiet_chat import QuietChat

LEARNING, ANSWERING, JUDGING = (1_391, 136), (9_000, 250), (600, 60)
"""Tokens read and written for an exchange and for a question, from `tests.lab.learning`."""

PERSON, DAY_S = 5_001, 86_400
_TELLING = re.compile(r"\b(?:[A-Z]\w{2,}|\d[\d.,:]*\d|\d)\b")
_JUDGE = (
    "You compare an assistant's answer about an earlier conversation with a reference answer. "
    '"right": it says what the reference says, in any words; more detail is fine. "partly": it '
    'says a part of it and nothing against it. "wrong": anything else, also if it does not know.'
)


class Verdict(BaseModel):
    """What the judge says of one answer."""

    reason: str = Field("", description="In one sentence")
    verdict: Literal["right", "partly", "wrong"] = "wrong"


SHAPE = AnswerShape.of({"judged": Verdict})
SCORES = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


@dataclass(frozen=True, slots=True)
class Case:
    """One question and what is expected: a reference answer, or the texts of wanted messages."""

    number: int
    category: str
    request: Request
    reference: str = ""
    wanted: Sequence[Sequence[str]] = ()
    before: str = ""


@dataclass(frozen=True, slots=True)
class Conversation:
    """Messages that are stored and learned from, and the questions that are asked at `now`."""

    name: str
    scope: Scope
    messages: Sequence[Message]
    now: float
    cases: Sequence[Case]


def read_conversations(path: Path) -> Iterator[Conversation]:
    """Yield the conversations of a folder or of a file of talks."""
    if path.is_file():
        for number, described in enumerate(json.loads(path.read_text())):
            talk = Talk(described, number)
            texts = {name: talk.messages[seq - 1].text for name, seq in talk.seqs.items()}
            cases = []
            for at, each in enumerate(talk.questions):
                wanted = [[texts[name] for name in names] for names in each.want]
                case = Case(at, each.category, talk.asked(each), "", wanted, each.before)
                cases += [case] if wanted else []
            yield Conversation(described["name"], talk.scope, talk.messages, talk.now, cases)
        return
    for person, labelled in enumerate(read_folder(path), PERSON):
        now = labelled.messages[-1].sent_at + DAY_S
        ids = {"user": person, "assistant": 0}
        said = [replace(each, sender_id=ids[each.role]) for each in labelled.messages]
        sender = Sender(person, "Person", "Person")
        cases = [
            Case(at, each.category, request_of(sender, each.text, now, person), each.answer)
            for at, each in enumerate(labelled.questions)
            if each.answer
        ]
        yield Conversation(labelled.name, Scope.of_chat(person), said, now, cases)


def has_all(answer: str, case: Case) -> float:
    """Return the share of wanted messages whose names and numbers an answer has."""
    asked, said = _words(case.request.message.text), _words(answer)
    found = [any(said >= _telling(text) - asked for text in texts) for texts in case.wanted]
    return sum(found) / len(found)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w[\w.,:]*\w|\w", text.casefold()))


def _telling(text: str) -> set[str]:
    """Return the names and numbers of a text, without the words that only begin a sentence."""
    inner = re.sub(r"(^|[.!?]\s+)[A-Z]\w*", r"\1", text)
    return {word.casefold() for word in _TELLING.findall(inner)}


class Bill:
    """Sums up what servers billed."""

    def __init__(self) -> None:
        self.sums: dict[BillingSource, Tokens] = defaultdict(Tokens)

    def __call__(self, report: CallReport) -> None:
        used = report.usage
        cached = min(used.cached_tokens, used.prompt_tokens)
        tokens = Tokens(used.prompt_tokens - cached, cached, used.completion_tokens)
        self.sums[BillingSource(report.kind, report.model)] += tokens

    def row(self, prices: Prices) -> dict[str, object]:
        total = sum(self.sums.values(), Tokens())
        read = total.fresh + total.cached
        return {"read": read, "written": total.output, "cost": f"{prices.cost(self.sums):.4f}"}


def announced(conversations: Sequence[Conversation], settings: Settings, judge: str) -> Bill:
    """Return what a whole run will be billed, roughly."""
    learned = sum(len(exchanges(each.messages)) for each in conversations)
    asked = [case for each in conversations for case in each.cases]
    judged, bill = sum(bool(case.reference) for case in asked), Bill()
    for model, times, (read, written) in (
        (settings.openai_memory_model, learned, LEARNING),
        (settings.openai_model, len(asked), ANSWERING),
        (judge, judged, JUDGING),
    ):
        bill.sums[BillingSource("answer", model)] += Tokens(times * read, 0, times * written)
    return bill


@dataclass(frozen=True, slots=True)
class Trial:
    """One bot that learns, is asked and is judged; `note` gets the result of each question."""

    memory: Memory
    assistant: Assistant
    loader: ContextLoader
    judge: StructuredModel
    note: Callable[[Mapping[str, object]], None]

    async def run(self, talk: Conversation, done: set[int], parallel: int) -> None:
        """Store and learn what is missing, and ask what is not done."""
        with simulated(SimulatedClock(talk.now)):
            await self._store(talk)
            slots = asyncio.Semaphore(parallel)

            async def ask(case: Case) -> None:
                async with slots:
                    await self._ask(talk, case)

            await asyncio.gather(*(ask(each) for each in talk.cases if each.number not in done))

    async def _store(self, talk: Conversation) -> None:
        memory, keys = self.memory, self.memory.keys.scope(talk.scope)
        if not await memory.client.call("XLEN", keys.log):
            said = [replace(each, tokens=memory.tokens.count(each.text)) for each in talk.messages]
            await append_all(memory, talk.scope, said)
        # The clock stands still, so a pause after a failure would never end.
        await memory.client.call("HDEL", keys.learned, "pause:batches", "pause:vectors")
        await memory.learn(talk.scope)

    async def _ask(self, talk: Conversation, case: Case) -> None:
        history = await AskedAfter.read(self.memory.histories, talk.scope)
        assert isinstance(history, AskedAfter)
        if case.before:
            history.before = replace(case.request.message, text=case.before)
        try:
            context = await self.loader.load(case.request, history)
            answer = (await self.assistant.run(context)).text
            score = await self._score(answer, case)
        except (ModelError, MessageRefused, EmbeddingsUnavailable) as error:
            self.note({"failed": type(error).__name__})
            return
        row = {"conversation": talk.name, "number": case.number, "category": case.category}
        self.note({**row, "score": score, "answer": answer})

    async def _score(self, answer: str, case: Case) -> float:
        if not case.reference:
            return has_all(answer, case)
        asked = {"question": case.request.message.text, "reference": case.reference}
        content = json.dumps({**asked, "answer": answer}, ensure_ascii=False)
        parts = await self.judge.fill(_JUDGE, content, SHAPE)
        judged = SHAPE.validate("judged", parts["judged"])
        assert isinstance(judged, Verdict)
        return SCORES[judged.verdict]


def table(results: Sequence[Mapping[str, Any]]) -> list[dict[str, object]]:
    """Return a row for each category, and one for all."""
    scores: dict[str, list[float]] = defaultdict(list)
    for each in results:
        for category in (each["category"], "all"):
            scores[category].append(each["score"])
    return [
        {"category": name, "questions": len(each), "score": round(100 * sum(each) / len(each), 1)}
        for name, each in sorted(scores.items())
    ]


async def bot_of(
    settings: Settings, memory: Memory, models: Models
) -> tuple[Assistant, ContextLoader]:
    """Return the whole bot without Telegram: its prompt, tools, features and learning."""
    services = services_of(memory, settings, models=models)
    await open_features(services)
    behaviors = behaviors_of(services)
    memory.enable_learning(behaviors.behaviors, models.internal)
    bot = assistant_of(services, behaviors)
    return bot, ContextLoader(bot, QuietChat(), settings.recall_k)


async def measure(
    settings: Settings, options: argparse.Namespace, redis: str, rows: list[Any]
) -> None:
    """Ask all questions that `rows` does not have yet, and print the table."""
    bill, tokens, client = Bill(), await TokenCounter.load(), await RedisClient.open(redis)
    failed: list[object] = []

    def note(row: Mapping[str, object]) -> None:
        if "failed" in row:
            failed.append(row)
            return
        rows.append(row)
        with options.out.open("a") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    async with AsyncExitStack() as stack:
        stack.push_async_callback(client.close)
        models = await stack.enter_async_context(open_models(settings, [bill]))
        limit_s = settings.model_timeout_s  # the client below is that of `open_models`
        judge = StructuredModel(models.client, options.judge, limit_s)  # type: ignore[arg-type]
        memory = Memory(client, 1, tokens, models.embedder, OPTIONS)
        trial = Trial(memory, *await bot_of(settings, memory, models), judge, note)
        for talk in read_conversations(options.path):
            done = {each["number"] for each in rows if each["conversation"] == talk.name}
            try:
                await trial.run(talk, done, options.parallel)
            except (EmbeddingsUnavailable, InternalModelUnavailable) as error:
                failed += [type(error).__name__] * (len(talk.cases) - len(done))
    for row in (*table(rows), {"unanswered": len(failed)}, bill.row(Prices(settings.prices))):
        sys.stdout.write(json.dumps(row) + "\n")


def main(arguments: Sequence[str]) -> None:
    """Announce what it costs and, with --yes, run."""
    parser = argparse.ArgumentParser(
        prog="tests.lab.judged", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("path", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--judge", default="")
    parser.add_argument("--parallel", type=int, default=4)
    parser.add_argument("--yes", action="store_true")
    options = parser.parse_args(arguments)
    settings = all_settings()(web="off")  # the answers lie in the talks
    options.judge = options.judge or settings.openai_memory_model
    conversations = list(read_conversations(options.path))
    expected = announced(conversations, settings, options.judge).row(Prices(settings.prices))
    questions = sum(len(each.cases) for each in conversations)
    sys.stdout.write(json.dumps({"announced": {"questions": questions, **expected}}) + "\n")
    sys.stdout.flush()
    if not options.yes:
        return
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    store = EmbeddedValkey(options.out.with_suffix(".store"))
    try:
        done = options.out.read_text().splitlines() if options.out.exists() else []
        rows = [json.loads(line) for line in done]
        asyncio.run(measure(settings, options, store.start(), rows))
    finally:
        store.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
