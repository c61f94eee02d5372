"""The offline model of internal calls: it quotes what people said and understands nothing.

With it the playground shows without a key how a running state, facts and synopses form.

A wish to be reminded is read by the tables of `offline_reminders.toml`: "in two hours", "on Friday
at six", "tomorrow morning", before or after what to remember, or "every day at 8". A sound has the
words that were typed with it.
"""

import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson

from bot.model.call import ModelObserver, Post, WhichModel
from bot.playground.offline_quotes import SAID, corrects, tells_nothing
from memory.text.internal_model import AnswerShape

_QUESTION = re.compile(r"[?？؟]\s*$")
_ASKED = re.compile(r"^## (\w+)$", re.MULTILINE)
_RANGE = re.compile(r"^## (\w+): learns from messages (\d+) to (\d+)$", re.MULTILINE)
_MAX_CHARS = 200
_TITLES = r"(?<!\b(?:Dr|Mr|Ms|St|Sr)\.)(?<!\b(?:Mrs|Sra)\.)(?<!\bProf\.)"
_SENTENCE = re.compile(rf"(?<=[.!?؟]){_TITLES}\s+(?!\d|[a-zа-я])")
_MAX_READ, _MAX_FACTS = 1_000, 5  # characters of a message that teach facts, and how many facts


@dataclass(frozen=True, slots=True)
class _Said:
    """A message in the input of an internal call."""

    number: int
    by_person: bool  # and not by the assistant
    text: str
    is_untrusted: bool


class OfflineInternalModel:
    """Answers internal calls with sentences from the input."""

    async def fill(self, instructions: str, content: str, _: AnswerShape) -> Mapping[str, object]:
        """Return the parts that the instructions ask for; the others are None."""
        asked = set(_ASKED.findall(instructions))
        lines = (orjson.loads(line) for line in content.splitlines() if line.startswith('{"id":'))
        known = {line["id"]: line["fact"] for line in lines if "fact" in line}
        parts: dict[str, object] = {
            "running_state": _state(_said_in(content, "running_state")),
            "facts": {"facts": _facts(_said_in(content, "facts"), known)},
            "synopses": _synopsis(_said_in(content, "synopses")),
        }
        return {name: part if name in asked else None for name, part in parts.items()}

    async def write(self, _: str, content: str, __: int) -> str:
        """Return the memories of the input with their dates, one a line."""
        lines = (line for line in content.splitlines() if line.startswith('{"on":'))
        return "\n".join("{on}: {memory}".format_map(orjson.loads(line)) for line in lines)


def _said_in(content: str, part: str) -> list[_Said]:
    """Return the messages of an input that one part learns from, oldest first."""
    ranges = {name: (int(first), int(last)) for name, first, last in _RANGE.findall(content)}
    first, last = ranges.get(part, (0, sys.maxsize))
    lines = (orjson.loads(line) for line in content.splitlines() if line.startswith('{"n":'))
    return [
        _Said(line["n"], line["who"] != "assistant", line["said"], line.get("untrusted", False))
        for line in lines
        if first <= line["n"] <= last
    ]


def _facts(said: list[_Said], known: Mapping[int, str]) -> list[dict[str, object]]:
    """Return what people said about themselves; what is corrected is replaced."""
    own = (each for each in said if each.by_person and not each.is_untrusted)
    told = [replace(each, text=fact) for each in own for fact in told_in(each.text)]
    facts = []
    for at, each in enumerate(told):
        if any(corrects(later.text, each.text) for later in told[at + 1 :]):
            continue
        replaces = next((n for n, old in known.items() if corrects(each.text, old)), None)
        lasts = "changes" if SAID["changes"].search(each.text) else "always"
        part = {"text": each.text, "message": each.number, "replaces": replaces, "lasts": lasts}
        facts.append(part | {"repeats": None})
    return facts


def told_in(text: str) -> list[str]:
    """Return what a person says about themselves, nothing if a tool keeps it.

    Each such sentence comes with the sentences after it that say more, up to a question. Nothing
    after a wish is read.
    """
    if kept_in(text):
        return []
    told: list[str] = []
    says_more = False
    sentences = _SENTENCE.split(text[:_MAX_READ])
    for each in sentences if len(text) <= _MAX_READ else sentences[:-1]:  # the last one is cut
        if begins_with_wish(each) or SAID["forget"].search(each):
            break
        if SAID["nod"].fullmatch(each):
            continue
        if _QUESTION.search(each) or SAID["remember"].search(each) or tells_nothing(each):
            says_more = False
        elif SAID["about_me"].search(each):
            told.append(each)
            says_more = True
        elif says_more := says_more and len(f"{told[-1]} {each}") <= _MAX_CHARS:
            told[-1] += f" {each}"
    return [each for each in told if len(each) <= _MAX_CHARS][:_MAX_FACTS]


def kept_in(text: str) -> str:
    """Return what a person wants the tool `remember` to keep; "" if nothing or too much."""
    keep = SAID["keep"].match(text)
    kept = text[keep.end() :].rstrip(" ?؟") if keep else ""
    return kept if len(kept) <= _MAX_CHARS else ""


def _state(said: list[_Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    return {
        "first_name": "unknown",
        "last_name": "unknown",
        "discussion_summary": by_people[-1] if by_people else "unknown",
        "key_entities": [],
        "open_problems": [],
        "current_goals": [],
    }


def _synopsis(said: list[_Said]) -> dict[str, object]:
    by_people = [each.text[:_MAX_CHARS] for each in said if each.by_person]
    answers = [each.text[:_MAX_CHARS] for each in said if not each.by_person]
    wish, result = next(iter(by_people), None), next(reversed(answers), None)
    unknown = dict.fromkeys(("behaviour", "emotions", "preferences", "reasoning"))
    actions = f"Answered {len(answers)} times"
    return {"likely_request": wish, "actions": actions, "result": result, **unknown}


_MAX_WISH = 400  # characters of a wish; a longer text is something else
_MORNING, _MAX_AFTERNOON = 9, 6
"""The hour of a day without one; a bare "at six", and what is before it, is in the afternoon."""
_DAY_AFTER_TOMORROW = 9  # its place in `days`


def _values(listed: str, start: int = 0) -> dict[str, int]:
    """Return the value of each form in a list: what follows "=", else its number from `start`."""
    entries = [each.replace("_", " ").partition("=") for each in listed.split()]
    return {
        form: int(value or number)
        for number, (forms, _, value) in enumerate(entries, start)
        for form in forms.split("/")
    }


class _Wishes:
    """Reads the wishes of one language by its table in `offline_reminders.toml`."""

    def __init__(self, table: Mapping[str, str]) -> None:
        self._days, self._numbers = _values(table["days"]), _values(table["numbers"], 1)
        self._values = {name: _values(table[name]) for name in ("units", "parts", "past")}
        hours = [forms.partition("/")[0] for forms in table["numbers"].split()]  # "one", not "a"
        words = {"hours": hours, "number": self._numbers, "day": self._days, **self._values}
        longest = {name: sorted(each, key=len, reverse=True) for name, each in words.items()}
        listed = {name: "|".join(map(re.escape, each)) or "(?!)" for name, each in longest.items()}
        time = _TIME.format_map({**table, **listed, "digits": r"\d{1,4}|"})
        find = partial(re.compile, flags=re.IGNORECASE)
        self.wish, self._verb = find(table["wish"]), find(table.get("verb", "(?!)"))
        self._task, self._to = find(table["task"]), find(rf"[\s,]*(?:{table['to']})?")
        self._begin, self._end = find(rf"(?:{time})(?!\w)"), find(rf"[\s,]+(?:{time})\s*\Z")
        again = rf"(?:{table['every']})(?:\d+ )?(?:{listed['units']})\b"
        self._unread = find(rf"{table['at']}|(?:{table['on']})(?:the )?\d|{again}")

    def read(self, text: str, now: datetime) -> dict[str, str | int]:
        """Return the arguments of `set_reminder`, none if the text is no wish with a time."""
        said: dict[str, str] = {}
        first = self._without_times(text, said)  # "tomorrow at 9 remind me to ..."
        is_wish = self.wish.search(first) is not None
        what = self._without_times(self._verb.sub(" ", self.wish.sub(" ", first)), said)
        is_open = is_wish and not said.keys() & {"unit", "hour"}
        while is_open and (found := self._end.search(what)):
            said = {name: each for name, each in found.groupdict().items() if each} | said
            what = what[: found.start()]
        is_asked = is_wish or ("again" in said and self._task.search(what))
        # A time or a date may be said in a way that is not listed: then it is asked again.
        if not is_asked or not what or not said or self._unread.match(what):
            return {}
        when = self._when({name: each.lower() for name, each in said.items()}, now)
        return {"text": what, **when, **({} if is_wish else {"is_task": True})} if when else {}

    def _without_times(self, text: str, said: dict[str, str]) -> str:
        """Return a text without the times at its beginning, which are added to `said`."""
        text = self._after_to(text)
        while found := self._begin.match(text):
            said |= {name: each for name, each in found.groupdict().items() if each}
            text = self._after_to(text[found.end() :])
        return text

    def _after_to(self, text: str) -> str:
        return self._to.sub("", text, count=1).strip()

    def _when(self, said: Mapping[str, str], now: datetime) -> dict[str, str | int]:
        """Return when a wish of `now` is due; nothing if there is no such time."""
        units, parts, past = self._values.values()
        if unit := said.get("unit"):
            return {"in_minutes": self._number(said.get("count", "1")) * units[unit]}
        day = self._days.get(said.get("day") or said.get("date", ""), -1)
        part = parts.get(said.get("part", ""), 0)
        hour = self._number(said["hour"]) if "hour" in said else part or _MORNING
        half, minute = said.get("half", ""), int(said.get("minute", 0))
        is_bare = not said.keys() & {"half", "minute", "part"} and hour <= _MAX_AFTERNOON
        if half == "am" or (hour < 12 and (half == "pm" or part >= 12 or is_bare)):
            hour = hour % 12 + 12 * (half != "am")
        minutes = hour * 60 + minute + past.get(said.get("before") or said.get("after", ""), 0)
        if not 0 <= minutes < 1440 or minute > 59:
            return {}
        hour, minute = divmod(minutes, 60)
        if "again" in said:
            return {"cron": f"{minute} {hour} * * {(day - 1) % 7 if day > 1 else '*'}"}
        at = now.replace(hour=hour, minute=minute, second=0, microsecond=0)
        weekdays = (day - 2 - now.weekday()) % 7 if day > 1 else max(0, day)
        at += timedelta(2 if day == _DAY_AFTER_TOMORROW else weekdays)
        if at <= now:
            at += timedelta(7 if day > 1 else 1)
        return {} if day == 0 and at.date() != now.date() else {"at": f"{at:%Y-%m-%dT%H:%M}"}

    def _number(self, said: str) -> int:
        return self._numbers[said] if said in self._numbers else int(said)


_TABLES = tomllib.loads(Path(__file__).with_name("offline_reminders.toml").read_text("utf-8"))
_TIME = "".join(_TABLES.pop("time").splitlines())
_LANGUAGES = tuple(map(_Wishes, _TABLES.values()))


def begins_with_wish(text: str) -> bool:
    """Return whether a text asks to be reminded, also at a time that `reminder_in` cannot read."""
    wished = any(each.wish.search(text.strip()) for each in _LANGUAGES)
    return wished or text.startswith("⏰") or bool(reminder_in(text, datetime.now(UTC)))


def reminder_in(text: str, now: datetime) -> dict[str, str | int]:
    """Return the arguments of `set_reminder` for a wish of `now`, none if the text is no such."""
    text = " ".join(text.rstrip(" .!?").split())
    read = (each.read(text, now) for each in _LANGUAGES if len(text) <= _MAX_WISH)
    return next(filter(None, read), {})


_MAX_SOUNDS = 20


class OfflineServer:
    """Stands for a server of sounds: it returns what a person typed with one, else ""."""

    which: WhichModel = "first"
    observers: Sequence[ModelObserver] = ()  # its calls cost nothing

    def __init__(self) -> None:
        self._typed: dict[bytes, str] = {}

    def keep(self, sound: bytes, words: str) -> None:
        """Keep the words of a sound; those of the latest sounds are known."""
        self._typed[sha256(sound).digest()] = words
        while len(self._typed) > _MAX_SOUNDS:
            del self._typed[next(iter(self._typed))]

    def to(self, *_: Any, **__: Any) -> "OfflineServer":
        """Return itself: there is no other server."""
        return self

    async def post_whole(self, post: Post, max_bytes: int) -> bytes:  # noqa: ARG002 - the port's
        """Return the words of a sound as a transcription, "" if none were typed."""
        sound = post.file[1] if post.file else b""
        return orjson.dumps({"text": self._typed.get(sha256(sound).digest(), "")})
