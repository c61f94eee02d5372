"""The offline chat model: a few rules, so that people can try the memory without a key.

It says that it is not a language model, calls the tools that it is offered, and quotes what it
finds in the prompt. It never puts a person's message into other words.
"""

import asyncio
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from importlib import resources
from typing import Literal
from uuid import uuid4

import orjson

from bot.agent.describe import PAGE_QUESTION, PICTURE_QUESTION
from bot.model.call import NO_LABELS, CallLabels, ModelReply, PromptMessage
from bot.model.live_text import live_observer
from bot.playground.offline_embedder import content_words, meanings, words
from bot.playground.offline_question import OfflineQuestion
from bot.playground.offline_reminders import reminder_in
from bot.playground.offline_senses import description_of
from bot.playground.offline_sums import expression_in
from memory.behaviors.steps import ToolCall
from memory.behaviors.tool import ToolDefinition

INTRODUCTION = (
    "I am not a language model. I am a small offline model: a few rules that let you try "
    "Ricordo's memory without a key. Tell me things and ask me about them later; I also know the "
    "time and can do sums. Set `OPENAI_API_KEY` to talk with a real model."
)
_WHO = re.compile(
    r"\b(?:who|what) are you\b|\bare you (?:an? |the )?(?:real|human|person|robot|bot|ai|llm|gpt|"
    r"chatgpt|(?:language )?model)\b|\b(?:wer|was) bist du\b|\bкто ты\b|\bты бот\b|"
    r"\b(?:quién|qué) eres\b|کی هستی",
    re.IGNORECASE,
)
_GREETING = re.compile(r"(?:hi|hello|hey|hallo|привет|hola|سلام)\b[\s\w]{0,20}[!.]*", re.IGNORECASE)
_THANKS = re.compile(
    r"(?:thanks|thank you|danke|спасибо|gracias|ممنون)\b[\s\w]{0,20}[!.]*", re.IGNORECASE
)
_TIME = re.compile(
    r"\b(?:what|which) (?:time|date|day) is (?:it|today)\b|\bwhat(?:['’]s| is) today\b|"
    r"(?:\bwhat(?:['’]s| is)|\btell me) the (?:current )?(?:time|date)\b(?! of| for)|"
    r"\btoday['’]s date\b|\bcurrent (?:time|date)\b|\bwie spät\b|\bwie ?viel uhr\b|"
    r"\bwelche[rsn]? (?:tag|datum)\b|\bкоторый час\b|\bсколько времени\b|\bкакое сегодня\b|"
    r"\bqué (?:hora|día|fecha)\b|ساعت چند|امروز چندم",
    re.IGNORECASE,
)
_REMEMBER = re.compile(
    r"\b(?:do|can) you (?:still )?(?:remember|recall)\b|\bremember (?:what|when|where|who)\b|"
    r"\b(?:did|have) (?:i|we) (?:ever )?(?:say|said|tell|told|mention|mentioned|talk|talked)\b|"
    r"\berinnerst du\b|\bпомнишь\b|\b(?:te acuerdas|recuerdas)\b|یادت",
    re.IGNORECASE,
)
_COUNT = re.compile(r"(?:please )?count (?:up )?to (\d{1,9})[.!]?", re.IGNORECASE)
_WORD_WITH_SPACE = re.compile(r"\s*\S+\s*")
_QUESTION = re.compile(
    r"[?？؟]|^(?:who|what|when|where|which|whose|why|how|is|are|was|were|do|does|did|can)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=\w\w\w[.…])\s+|(?<=[!?؟])\s+|(?<=[。！？])|\n+")  # not "Dr. X"
_REMEMBERED = re.compile(  # a date, or a dash for that of the line above; a number; a speaker
    r"^(?:\[([^\]\n]+)\]|-) (?:#\d+ )?([^:\n]*): ", re.MULTILINE
)
_SYNOPSIS_LABELS = {"Request", "Done", "Result", "Behaviour", "Emotions", "Preferences"}
_CLOCK = re.compile(r"T(\d\d:\d\d):\S+")  # of 2026-03-04T12:30:59+00:00, the part people read
_LINK = re.compile(r"https?://[^\s<>\"'()]*[^\s<>\"'().,;:!?]")
_NO_CAPTION = (
    "What it shows I cannot tell. Write it beside a picture, and you can ask for it later."
)
_MAX_COUNT = 500
"""Counting is the one long answer here: it shows how an answer grows and can be stopped."""
_MIN_SHARE = 0.3
"""Share of a question's words that a sentence must contain to answer it."""


class OfflineChatModel:
    """Answers a prompt by rules, after `pause_s` of thought; it keeps nothing between calls.

    If somebody watches, it takes `word_s` for each word, so that a long answer is seen to grow.
    """

    def __init__(self, pause_s: float = 0.3, word_s: float = 0.02) -> None:
        self._pause_s = pause_s
        self._word_s = word_s
        zones = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
        self._zones = {zone.split("/")[-1].replace("_", " ").casefold(): zone for zone in zones}

    async def complete(
        self,
        messages: Sequence[PromptMessage],
        tools: Sequence[ToolDefinition],
        *,
        tool_choice: Literal["auto", "none"] = "auto",
        labels: CallLabels = NO_LABELS,  # noqa: ARG002 - the port's
    ) -> ModelReply:
        """Return tool calls if the question needs a tool, else the answer."""
        await asyncio.sleep(self._pause_s)
        pictures, asked = messages[-1].pictures, messages[-1].content
        if pictures and asked in (PICTURE_QUESTION, PAGE_QUESTION):
            words = "" if asked == PAGE_QUESTION else await description_of(pictures[0])
            return ModelReply(words, (), "stop", is_blind=not words)
        question = OfflineQuestion.of(messages)
        names = {tool.name for tool in tools} if tool_choice == "auto" else set()
        calls = () if question.results else tuple(self._calls(question.text, names))
        if calls:
            return ModelReply("", calls, "tool_calls")
        asks_who = bool(_WHO.search(question.text))
        paragraphs = [INTRODUCTION] if asks_who or question.is_first else []
        seen = [await description_of(picture) for picture in question.pictures]
        paragraphs += [f"I see this: {words}." for words in seen]
        if question.pictures and not question.text:
            paragraphs.append(_NO_CAPTION)
        elif not asks_who:
            paragraphs.append(_answer(question))
        reply = ModelReply("\n\n".join(paragraphs), (), "stop")
        await self._write(reply)
        return reply

    async def _write(self, reply: ModelReply) -> None:
        """Show the reply word by word to whoever watches."""
        watch = live_observer()
        if watch is None:
            return
        written = 0

        def so_far() -> ModelReply:
            return replace(reply, text=reply.text[:written])

        for word in _WORD_WITH_SPACE.finditer(reply.text):
            written = word.end()
            watch(so_far)
            await asyncio.sleep(self._word_s)

    def _calls(self, text: str, names: set[str]) -> Iterator[ToolCall]:
        reminder = reminder_in(text)
        if "set_reminder" in names and reminder:
            yield _call("set_reminder", **reminder)
            return
        if "current_time" in names and _TIME.search(text):
            spoken = f" {' '.join(words(text))} "
            zones = [zone for city, zone in self._zones.items() if f" {city} " in spoken]
            yield _call("current_time", **({"timezone": zones[0]} if zones else {}))
        expression = expression_in(text)
        if "read_page" in names and (link := _LINK.search(text)):
            yield _call("read_page", url=link[0])
            return
        if "calculate" in names and expression:
            yield _call("calculate", expression=expression)
        if "search_memory" in names and _REMEMBER.search(text):
            subject = content_words(_REMEMBER.sub(" ", text))
            yield _call("search_memory", query=" ".join(subject) or text)


def _call(name: str, **arguments: str | int) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex}", name, orjson.dumps(arguments).decode())


def _answer(question: OfflineQuestion) -> str:
    if question.results:
        return "\n".join(_from_tool(question, call, result) for call, result in question.results)
    text = question.text.strip()
    if count := _COUNT.fullmatch(text):
        return " ".join(map(str, range(1, min(int(count[1]), _MAX_COUNT) + 1)))
    if _GREETING.fullmatch(text):
        return "Hello! Tell me something worth remembering."
    if _THANKS.fullmatch(text):
        return "You are welcome."
    if _QUESTION.search(text) or _REMEMBER.search(text):
        return _quote(question) or "I have not heard about that yet. Tell me, and I will know it."
    return f"Noted: “{_short(_sentences(text)[0], 120)}” Ask me about it whenever you like."


def _from_tool(question: OfflineQuestion, call: ToolCall, result: str) -> str:
    """Say what a tool found; of a failed tool, only that it failed."""
    if call.name == "search_memory":
        return _quote(question, result) or "I looked, and found nothing about that."
    if call.name == "read_page" and not result.startswith("Error:"):
        _, *lines = filter(None, result.splitlines())
        return f"I read the page. It begins: “{_short(' – '.join(lines), 300)}”"
    if result.startswith("Error:"):
        return "That did not work out, sorry."
    if call.name == "set_reminder":
        return "All right." if result.startswith("Set") else "I need one answer from you first:"
    if call.name == "calculate":
        return f"{orjson.loads(call.arguments)['expression']} = {result}"
    return "My clock says: " + _CLOCK.sub(r", \1", result)


def _quote(question: OfflineQuestion, found: str = "") -> str:
    """Return the sentence that shares most words with the question, and when it was said.

    It looks into the memory section, into what a tool found, and into the window, which has no
    dates. Asked about nothing in particular, it returns the last sentence; without a match, "".
    """
    wanted = _meanings(_REMEMBER.sub(" ", question.text))
    if not wanted and not _REMEMBER.search(question.text):
        return ""
    sentences = [*_remembered(question.memory), *_remembered(found)]
    sentences += [("A little earlier", said) for m in question.earlier for said in _sentences(m)]
    best_share, best = _MIN_SHARE, ""
    for when, sentence in sentences:
        share = len(wanted & _meanings(sentence)) / len(wanted) if wanted else 1
        if share >= best_share and not _QUESTION.search(sentence):
            best_share, best = share, f"{when}: “{_short(sentence, 300)}”"
    return best


def _remembered(section: str) -> Iterator[tuple[str, str]]:
    """Yield date and sentence of everything that people said in a list of remembered messages."""
    _, *parts = _REMEMBERED.split(section)
    date = ""
    for dated, speaker, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        date = dated or date
        if speaker != "You (assistant)" and speaker not in _SYNOPSIS_LABELS:
            for sentence in _sentences(said):
                yield f"From {date}", sentence


def _sentences(text: str) -> list[str]:
    """Return the sentences of a text; the whole text if it has no sentence end."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text)]
    return [sentence for sentence in sentences if sentence] or [text]


def _meanings(text: str) -> set[str]:
    return set(meanings(text)) if content_words(text) else set()


def _short(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars].rstrip()} …"
