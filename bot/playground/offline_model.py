"""Plays the model where there is no key: a few rules, so that people can try the memory.

It says that it is no language model, calls the tools that it is offered, and quotes what it finds
in the prompt. It understands nothing, so it never puts into own words what a person said.
"""

import re
from collections.abc import Iterator
from importlib import resources

import orjson

from bot.playground.model_api.hashed_words import is_stop_word, words
from bot.playground.model_api.replies import Reply, tool_call
from bot.playground.model_api.requests import ChatRequest
from bot.playground.offline_memory import internal_answer, narrative
from bot.playground.offline_sums import expression_in
from memory.behaviors.steps import ToolCall

INTRODUCTION = (
    "I am no language model, only an offline stand-in: a few rules that let you try Ricordo's "
    "memory without a key. Tell me things and ask me about them later; I also know the time and "
    "can do sums. Set `OPENAI_API_KEY` to talk with a real model."
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
_QUESTION = re.compile(
    r"[?？؟]|^(?:who|what|when|where|which|whose|why|how|is|are|was|were|do|does|did|can)\b",
    re.IGNORECASE,
)
_SENTENCE_END = re.compile(r"(?<=\w\w\w[.…])\s+|(?<=[!?؟])\s+|(?<=[。！？])|\n+")  # "Dr. X" is none
_REMEMBERED = re.compile(r"^(?:- )?\[([^\]\n]+)\] ([^:\n]*): ", re.MULTILINE)  # date, speaker
_CLOCK = re.compile(r"T(\d\d:\d\d):\S+")  # of 2026-03-04T12:30:59+00:00, what people read
_ENOUGH = 0.3  # of a question's words must stand in a sentence that is to answer it


class OfflineModel:
    """Answers by rules; nothing is kept between two requests.

    A streamed answer takes `chunk_delay_s` for each word.
    """

    def __init__(self, chunk_delay_s: float = 0.03) -> None:
        self._chunk_delay_s = chunk_delay_s
        zones = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
        self._zones = {zone.split("/")[-1].replace("_", " ").casefold(): zone for zone in zones}

    async def respond(self, request: ChatRequest) -> Reply:
        """Return tool calls where the question wants some, else the answer."""
        if request.response_format != "text":
            return Reply(internal_answer(request))
        if not request.tools:
            return Reply(narrative(request))
        results = _results(request)
        calls = () if results else tuple(self._calls(request))
        if calls:
            return Reply(tool_calls=calls, chunk_delay_s=self._chunk_delay_s)
        asked_who = bool(_WHO.search(request.asked))
        said = [INTRODUCTION] if asked_who or _is_first(request) else []
        said += [] if asked_who else [_answer(request, results)]
        return Reply("\n\n".join(said), chunk_delay_s=self._chunk_delay_s)

    def _calls(self, request: ChatRequest) -> Iterator[ToolCall]:
        asked, usable = request.asked, request.usable_tools
        if "current_time" in usable and _TIME.search(asked):
            spoken = f" {' '.join(words(asked))} "
            zones = [zone for city, zone in self._zones.items() if f" {city} " in spoken]
            yield tool_call("current_time", **({"timezone": zones[0]} if zones else {}))
        expression = expression_in(asked)
        if "calculate" in usable and expression:
            yield tool_call("calculate", expression=expression)
        if "search_memory" in usable and _REMEMBER.search(asked):
            subject = _subject(_REMEMBER.sub(" ", asked))
            yield tool_call("search_memory", query=" ".join(subject) or asked)


def _is_first(request: ChatRequest) -> bool:
    return all(message.role != "assistant" or message.tool_calls for message in request.messages)


def _results(request: ChatRequest) -> list[tuple[ToolCall, str]]:
    """Return the calls of this run with their results, in order."""
    calls = {call.id: call for message in request.messages for call in message.tool_calls}
    found: list[tuple[ToolCall, str]] = []
    for message in request.messages:
        if message.role == "user":
            found = []
        elif message.role == "tool":
            found.append((calls[message.tool_call_id], message.content))
    return found


def _answer(request: ChatRequest, results: list[tuple[ToolCall, str]]) -> str:
    if results:
        return "\n".join(_told(request, call, result) for call, result in results)
    if _GREETING.fullmatch(request.asked.strip()):
        return "Hello! Tell me something worth remembering."
    if _THANKS.fullmatch(request.asked.strip()):
        return "You are welcome."
    if _QUESTION.search(request.asked) or _REMEMBER.search(request.asked):
        return _quote(request) or "I have not heard about that yet. Tell me, and I will know it."
    return (
        f"Noted: “{_short(_sentences(request.asked)[0], 120)}” Ask me about it whenever you like."
    )


def _told(request: ChatRequest, call: ToolCall, result: str) -> str:
    """Say what a tool found; of a failed one, only that it failed."""
    if call.name == "search_memory":
        return _quote(request, result) or "I looked, and found nothing about that."
    if result.startswith("Error:"):
        return "That did not work out, sorry."
    if call.name == "calculate":
        return f"{orjson.loads(call.arguments)['expression']} = {result}"
    return "My clock says: " + _CLOCK.sub(r", \1", result)


def _quote(request: ChatRequest, found: str = "") -> str:
    """Return the sentence that shares most words with the question, and when it was said.

    Looks into what a tool found, the memory section and the window, which knows no dates. Asked to
    remember nothing in particular, it returns the last thing said; with no match, nothing.
    """
    wanted = _stems(_REMEMBER.sub(" ", request.asked))
    if not wanted and not _REMEMBER.search(request.asked):
        return ""
    sentences = [(f"From {date}", said) for date, said in _remembered(request.memory)]
    sentences += [(f"From {date}", said) for date, said in _remembered(found)]
    for message in request.messages:
        if message.role == "user" and message.content != request.last_user_message:
            sentences += [("A little earlier", said) for said in _sentences(message.content)]
    best_share, best = _ENOUGH, ""
    for when, sentence in sentences:
        share = len(wanted & _stems(sentence)) / len(wanted) if wanted else 1
        if share >= best_share and not _QUESTION.search(sentence):
            best_share, best = share, f"{when}: “{_short(sentence, 300)}”"
    return best


def _remembered(section: str) -> Iterator[tuple[str, str]]:
    """Yield date and sentence of everything that people said in a list of remembered messages."""
    _, *parts = _REMEMBERED.split(section)
    for date, speaker, said in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if speaker != "You (assistant)":
            for sentence in _sentences(said):
                yield date, sentence


def _sentences(text: str) -> list[str]:
    """Return what stands between two ends, the whole of a text that has none."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text)]
    return [sentence for sentence in sentences if sentence] or [text]


def _subject(text: str) -> list[str]:
    return [word for word in words(text) if not is_stop_word(word)]


def _stems(text: str) -> set[str]:
    """Return the words that say something, cut so that most inflected forms are equal."""
    return {word[:5] for word in _subject(text)}


def _short(text: str, max_chars: int) -> str:
    return text if len(text) <= max_chars else f"{text[:max_chars].rstrip()} …"
