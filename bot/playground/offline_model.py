"""The offline chat model: a few rules, so that people can try the memory without a key.

It says that it is not a language model, calls the tools that it is offered, and quotes what it
finds in the prompt. It never puts a person's message into other words. Of a picture it tells format
and size.
"""

import asyncio
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime
from importlib import resources
from uuid import uuid4

import orjson

from bot.model.call import ModelReply, ModelRequest, PromptMessage, live_observer
from bot.playground.offline_memory import begins_with_wish, kept_in, reminder_in, told_in
from bot.playground.offline_quotes import (
    MEANINGS,
    NUMBER,
    SAID,
    SAYS,
    Quotes,
    Remembered,
    alike,
    content_words,
    meanings,
    outdated,
    quoted,
    readable,
    remembered,
    short,
)
from bot.turn.notes import QUESTION_ALONE
from memory.behaviors.steps import ToolCall
from memory.message import Picture
from memory.search.question import named_days, relative_periods, tells_time
from memory.search.words import CLAIMED_BY, LANGUAGES, asked_words_of, script_of, words_of

PICTURE_QUESTION, PAGE_QUESTION = "What does it show?", "What does the page say?"
"""What features ask about pictures."""
_PHOTO_MARK = "[photo]"
_UNSEEN = re.compile(r"\[attached [a-z ]+: you cannot see or hear it\] ")
_MEMORY = re.compile(r"(?<!\s)\s*+<memory>(.*?)</memory>\s*+", re.DOTALL)
_WORD_WITH_SPACE = re.compile(r"\s*\S+\s*")
_CLOCK = re.compile(r"T(\d\d:\d\d):\S+")  # of 2026-03-04T12:30:59+00:00, the part people read
_LINK = re.compile(r"https?://[^\s<>\"'()]*[^\s<>\"'().,;:!?]")
_MAX_COUNT = 500  # the one long answer here: it shows how an answer grows and can be stopped
_SEARCH = "search_memory"
_MAX_READ, _MAX_END = 3_000, 500  # characters read of a text, and of its end, where it may ask
_ARABIC, _PERSIAN = frozenset("أإةىيك"), frozenset("پچژگکی")  # letters of one of them alone
_MAX_OF_A_TIME = 3
_MAX_KNOWN = 12  # statements that are told if somebody asks what is known
_MAX_LOOKED_UP = 4  # words that look something up without a question mark
_MAX_WORDS = 3  # searches with words that mean the same as those of the person
_MAX_QUERY = 500  # characters of a query that `search_memory` takes


class OfflineQuestion:
    """A prompt as the rules read it; in a group a message begins with a name out of `writers`."""

    def __init__(self, messages: Sequence[PromptMessage], writers: Collection[str] = ()) -> None:
        start = max(at for at, each in enumerate(messages) if each.role == "user")
        asked = messages[start]
        memory = _MEMORY.match(asked.content)
        calls = {call.id: call for message in messages for call in message.tool_calls}
        results = [each for each in messages[start:] if each.role == "tool"]
        content = asked.content[memory.end() :] if memory else asked.content
        text = _without_name(_UNSEEN.sub("", content).replace(_PHOTO_MARK, "").strip(), writers)
        self.text = text if len(text) <= _MAX_READ else f"{text[:_MAX_READ]} {text[-_MAX_END:]}"
        self.memory = memory[1] if memory else ""
        self.earlier = _kept(messages[:start])
        self._said = {_without_name(each, writers) for each in self.earlier}
        self.results = [(calls[each.tool_call_id], each.content) for each in results]
        self.is_first = all(each.role != "assistant" or each.tool_calls for each in messages)
        self.pictures = asked.pictures
        self.language = spoken_in([self.text, *reversed(self.earlier)])
        self.says = SAYS[self.language]

    @property
    def asks(self) -> bool:
        """Whether it asks for something remembered."""
        asks = SAID["question"].search(self.text) or SAID["remember"].search(self.text)
        return bool(asks) and not SAID["forget"].search(self.text)

    def memories(self, found: str = "") -> list[Remembered]:
        """Return what the memory section, the results `found` and the window remember."""
        section = [*remembered(self.memory), *remembered(found)]
        unique = {each.text: each for each in section if each.text not in self._said}
        return [*unique.values(), *(Remembered("earlier", "", each) for each in self.earlier)]


def _without_name(text: str, writers: Collection[str]) -> str:
    name, _, said = text.partition(": ")
    return said if name in writers else text


def _kept(messages: Sequence[PromptMessage]) -> list[str]:
    """Return what people said, oldest first, without what was forgotten on their wish."""
    said: list[str] = []
    for each in messages:
        if each.role == "user":
            said += [] if each.content.startswith(_SEEN) else [_UNSEEN.sub("", each.content)]
        elif each.content in _FORGOT:
            memories = [Remembered("fact", "", text) for text in said]
            forgotten = {memory.text for memory in _unwanted(said[-1], memories)}
            said = [text for text in said if text not in forgotten]
    return said


_FORGOT = frozenset(says["forgotten"] for says in SAYS.values())
_SEEN = tuple(f"{_PHOTO_MARK} {says['seen'].partition('{')[0]}" for says in SAYS.values())
"""The description of a photo begins like this if it is what this model has said of it."""


class OfflineChatModel:
    """Answers a prompt by rules, after `pause_s` of thought; it keeps nothing between calls.

    If somebody watches, it takes `word_s` for each word, so that a long answer is seen to grow.
    `writers` returns the names of the people of the group.
    """

    def __init__(
        self,
        pause_s: float = 0.3,
        word_s: float = 0.02,
        writers: Callable[[], Collection[str]] = tuple,
    ) -> None:
        self._pause_s = pause_s
        self._word_s = word_s
        self._writers = writers
        zones = resources.files("tzdata").joinpath("zones").read_text("utf-8").split()
        self._zones = {zone.split("/")[-1].replace("_", " ").casefold(): zone for zone in zones}

    async def complete(self, request: ModelRequest) -> ModelReply:
        """Return tool calls if the question needs a tool, else the answer."""
        await asyncio.sleep(self._pause_s)
        messages = request.messages
        pictures, asked = messages[-1].pictures, messages[-1].content
        if pictures and asked in (PICTURE_QUESTION, PAGE_QUESTION):
            seen = [] if asked == PAGE_QUESTION else [description_of(p) for p in pictures]
            many = "\n".join(f"[{n}] {each}" for n, each in enumerate(seen, 1))
            words = seen[0] if len(seen) == 1 else many
            return ModelReply(words, (), "stop", is_blind=not words)
        question = OfflineQuestion(messages, self._writers())
        names = {each.name for each in request.tools if request.tool_choice == "auto"}
        calls = () if question.results else tuple(self._calls(question, names))
        if not calls and not question.results and _SEARCH in names:
            calls = tuple(_call(_SEARCH, **search) for search in _searches(question))
        if calls:
            return ModelReply("", calls, "tool_calls")
        asks_who = bool(SAID["who"].search(question.text))
        says = question.says
        paragraphs = [says["intro"]] if asks_who or question.is_first else []
        paragraphs += [says["seen"].format(description_of(each)) for each in question.pictures]
        if question.pictures and not question.text:
            paragraphs.append(says["caption"])
        elif not asks_who:
            said = next(filter(None, _answers(question)), "")
            paragraphs += [said] * (said != QUESTION_ALONE or not paragraphs)
        reply = ModelReply("\n\n".join(paragraphs), (), "stop")
        await self._write(reply)
        return reply

    async def _write(self, reply: ModelReply) -> None:
        watch = live_observer.get()
        if watch is None:
            return
        written = 0

        def so_far() -> ModelReply:
            return replace(reply, text=reply.text[:written])

        for word in _WORD_WITH_SPACE.finditer(reply.text):
            written = word.end()
            watch(so_far)
            await asyncio.sleep(self._word_s)

    def _calls(self, question: OfflineQuestion, names: set[str]) -> Iterator[ToolCall]:
        text = question.text
        facts = [each for each in remembered(question.memory) if each.id]
        if "forget_memory" in names and (ids := [each.id for each in _unwanted(text, facts)]):
            yield _call("forget_memory", id=ids[0], others=ids[1:])
            return
        if "remember" in names and (kept := kept_in(text)):
            yield _call("remember", text=kept)
            return
        reminder = reminder_in(text, datetime.now().astimezone())
        if "set_reminder" in names and reminder:
            yield _call("set_reminder", **reminder)
            return
        if "current_time" in names and SAID["time"].search(text):
            spoken = f" {' '.join(words_of(text))} "
            zones = [zone for city, zone in self._zones.items() if f" {city} " in spoken]
            yield _call("current_time", **({"timezone": zones[0]} if zones else {}))
        if "read_page" in names and (link := _LINK.search(text)):
            yield _call("read_page", url=link[0])


def _call(name: str, **arguments: str | int | list[int]) -> ToolCall:
    return ToolCall(f"call_{uuid4().hex}", name, orjson.dumps(arguments).decode())


def _answers(question: OfflineQuestion) -> Iterator[str]:
    """Yield what may be answered, best first; "" is no answer."""
    text, says = question.text.strip(), question.says
    if question.results:
        yield _from_tools(question)
    if count := SAID["count"].fullmatch(text):
        yield " ".join(map(str, range(1, min(int(count[1]), _MAX_COUNT) + 1)))
    yield from (says[name] for name in _SMALL_TALK if SAID[name].fullmatch(text))
    if SAID["forget"].search(text):
        yield says["forget_what"]
    if SAID["know"].fullmatch(text):
        yield _all_known(question) or says["unknown"]
    if begins_with_wish(text) and not text.startswith("⏰"):
        yield says["when"]
    if question.asks:
        unknown = says["caption" if question.pictures else "unknown"]
        yield _quotes(question) or (QUESTION_ALONE if text.startswith("⏰") else unknown)
    noted = [says["noted"].format(short(text, 120)), *quoted(_files(question), question.language)]
    yield _looked_up(question) or "\n".join(noted)


_SMALL_TALK = ("cancel", "forget_what", "greeting", "thanks", "fine", "bye", "nod", "wrong")
"""What needs no memory to be answered: names of patterns and of sentences."""


def _all_known(question: OfflineQuestion) -> str:
    memories = question.memories()
    old = outdated(memories)
    told = {
        each.text: replace(each, group=[])
        for each in reversed(memories)
        if each.is_answer and (each.kind == "fact" or told_in(each.text))
    }
    latest = [each for text, each in told.items() if text not in old][:_MAX_KNOWN]
    lines = quoted(latest[::-1], question.language)
    return "\n".join([question.says["know"], *lines]) if latest else ""


def _unwanted(wish: str, memories: Sequence[Remembered]) -> list[Remembered]:
    """Return what a wish to forget is about, none if that is not sure."""
    is_wish = SAID["forget"].search(wish) and not SAID["cancel"].fullmatch(wish.strip())
    return Quotes(SAID["forget"].sub(" ", wish), memories).sure if is_wish else []


def _files(question: OfflineQuestion) -> list[Remembered]:
    """Return the first passage of a file that was sent with the text.

    Passages that recall found share a word with the text; those of a new file need not.
    """
    words = set(meanings(question.text))
    passages = [each for each in remembered(question.memory) if each.kind == "passage"]
    return passages[:1] if all(words.isdisjoint(meanings(each.text)) for each in passages) else []


def _looked_up(question: OfflineQuestion) -> str:
    """Return what a few words look up: a longer statement that has them all ("walnut cake")."""
    words, length = set(meanings(question.text)), len(question.text)
    longer = (each for each in question.memories() if each.is_answer and len(each.text) > length)
    found = [each for each in longer if words <= set(meanings(each.text))]
    is_asked = 0 < len(words) <= _MAX_LOOKED_UP and not question.pictures
    return "\n".join(quoted(found[-1:], question.language)) if is_asked else ""


def _from_tools(question: OfflineQuestion) -> str:
    found = "\n".join(each for call, each in question.results if call.name == _SEARCH)
    others = [each for each in question.results if each[0].name != _SEARCH]
    lines = [_from_tool(call, result, question.says) for call, result in others]
    if found:
        lines.append(_quotes(question, found) or question.says["nothing"])
    return "\n".join(lines)


_DONE = {"set_reminder": "done", "forget_memory": "forgotten", "remember": "kept"}
_IS_DONE = ("Set", "Forgotten", "Kept", "This is known")
"""How the result of a tool begins that has done its work; else the person is asked first."""


def _from_tool(call: ToolCall, result: str, says: Mapping[str, str]) -> str:
    """Say what a tool did; of a failed tool, only that it failed, or what it did not keep."""
    if result.startswith("Error:"):
        kept = orjson.loads(call.arguments).get("text", "") if call.name == "remember" else ""
        return says["noted"].format(short(kept, 120)) if kept else says["failed"]
    if call.name == "read_page":
        _, *lines = filter(None, result.splitlines())
        return says["page"].format(short(" – ".join(lines)))
    if call.name in _DONE:
        return says[_DONE[call.name]] if result.startswith(_IS_DONE) else QUESTION_ALONE
    return says["clock"].format(_CLOCK.sub(r", \1", result))


def _quotes(question: OfflineQuestion, found: str = "") -> str:
    """Return what answers the question in the memory section, in `found` and in the window.

    Asked about nothing in particular, it returns the last thing said; without a match, "".
    """
    asked = SAID["remember"].sub(" ", question.text)
    memories = question.memories(found)
    times = _period(asked)
    words = asked_words_of(asked)
    untimed = " ".join(word for word in words if not (tells_time(word) or named_days(word)))
    wanted = meanings(untimed if times else asked)
    if found and times and not wanted.keys() - {NUMBER}:
        said_then = [each for each in remembered(found) if each.is_answer]
        return "\n".join(quoted(said_then[:_MAX_OF_A_TIME], question.language))
    if wanted:
        return "\n".join(Quotes(asked, memories).lines(question.language))
    said = memories if asked != question.text else []
    answers = [each for each in said if each.kind != "passage" and each.is_answer]
    return "\n".join(quoted(answers[-1:], question.language))


def _searches(question: OfflineQuestion) -> Iterator[dict[str, str]]:
    """Yield the arguments of searches for what the prompt does not answer.

    The first has the person's words. The others have words that mean the same, in the language of
    the talk; each search has few words, because a text must have a good part of them.
    """
    text = question.text.strip()
    if (
        SAID["who"].search(text)
        or not question.asks
        or any(SAID[e].fullmatch(text) for e in (*_SMALL_TALK, "know"))
    ):
        return
    asked = SAID["remember"].sub(" ", question.text)
    memories = question.memories()
    said = [each.text for each in memories if each.is_answer]
    wanted = dict.fromkeys(readable(meanings(asked), said).values())
    wanted.pop(NUMBER, None)
    time = _period(asked)
    is_sure = not time and Quotes(asked, memories).sure
    if asked == question.text and (not wanted or is_sure):
        return
    language = spoken_in([" ".join(said)])
    queries = [" ".join(dict.fromkeys(content_words(asked))) or question.text]
    words = [alike(meaning, language) for meaning in wanted]
    queries += [" ".join(each[turn % len(each)] for each in words) for turn in range(_MAX_WORDS)]
    for query in dict.fromkeys(filter(None, queries)):
        yield {"query": query[:_MAX_QUERY]} | time


def spoken_in(texts: Sequence[str]) -> str:
    """Return the language of `SAYS` that the first text is in, or the next one that tells it.

    A text of one Latin word counts after longer ones: it may be a name. Arabic counts as English.
    """
    letters = {*"".join(texts[:1])}
    if letters & _ARABIC and not letters & _PERSIAN:
        return "en"
    votes = [
        Counter(
            c
            for word in words_of(t)
            for c in SAYS
            if c in CLAIMED_BY.get(word, ()) or (c, f"={word}") in MEANINGS.of_stem
        )
        for t in texts
    ]
    is_name = [[script_of(word) for word in words_of(text)] == ["latin"] for text in texts]
    ordered = [votes[at] for at in sorted(range(len(texts)), key=is_name.__getitem__)]
    for each in filter(None, ordered):
        if [*each.values()].count(max(each.values())) == 1:
            return max(each, key=lambda code: each[code])
    scripts = {script_of(word) for text in texts[:1] for word in words_of(text)}
    fitting = [code for code in SAYS if LANGUAGES[code].script in scripts]
    return min(votes[0], key=[*SAYS].index, default="") or next(iter(fitting), "en")


def _period(asked: str) -> dict[str, str]:
    today = datetime.now(UTC).date()
    named = [each.periods(today.year - 1, today.year) for each in named_days(asked)]
    periods = relative_periods(asked, today) or [p for each in named for p in each]
    if past := [each for each in periods if date.fromordinal(each[0]) <= today]:
        first, last = (date.fromordinal(day) for day in max(past))
        return {"since": first.isoformat(), "until": last.isoformat()}
    return {}


def description_of(picture: Picture) -> str:
    """Return what can be said of a picture without understanding it."""
    kind = picture.mime_type.removeprefix("image/").upper()
    return f"{kind} picture, {picture.width} × {picture.height} pixels"
