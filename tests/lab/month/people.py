"""Telegram and the people of the month: what they write, and what they see.

Every message has a marker of its own and a word that only this chat says. The model answers with
the marker, so each chat shows which messages were answered, how often and in which order. A person
who has erased something says another word from then on, so the former one must be nowhere.
"""

import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO
from itertools import pairwise
from random import Random
from typing import Any
from urllib.parse import parse_qs, unquote

from PIL import Image

from tests.lab.lean_http import answer
from tests.lab.lean_telegram import LeanTelegram, Update
from tests.lab.month.model import MARKER

_REMINDER_S = 60
_TEXTS = (
    "The boat {word} lies in Oulu since {day}, near the old {place}. {marker}?",
    "Das Boot {word} liegt seit {day} in Oulu, neben {place}. {marker}?",
    "El barco {word} está en Oulu desde {day}, cerca de {place}. {marker}?",
    "قایق {word} از {day} در اولو است، نزدیک {place}. {marker}؟",
    "Лодка {word} стоит в Оулу с {day}, рядом с {place}. {marker}?",
)
_PLACES = ("harbour", "Leuchtturm", "mercado", "پل", "маяк", "mill", "Kirche", "puerto", "بازار")
_WISHES = {
    "reminder": "Remind me in 1 minutes of {word} r{number}. {marker}?",
    "task": "Do this in 1 minutes: {word} r{number}. {marker}?",
    "clear": "/clear",
    "forget": "/forget",
    "import": "/import\n- The {word} was built in Turku, {marker}.\n- The {word} has a red sail.",
}
CHANCES = {
    "stranger": 20,
    "text": 800,
    "burst": 40,
    "edit": 20,
    "reminder": 30,
    "task": 10,
    "voice": 20,
    "photo": 5,
    "document": 10,
    "clear": 3,
    "forget": 3,
    "import": 4,
}
"""What people do, and how often of so many times."""

ACTS = ("document", "clear", "forget", "import")  # what the bot does without an answer of the model
PRIVATE = ("voice", *ACTS)
"""What a group does not do: there it would need an administrator or a reply."""
SAID = {
    "task": "I'll do this",
    "document": "I've read",
    "clear": "This conversation is erased",
    "forget": "I've forgotten you",
    "import": "I know your list now",
    "stranger": "by invitation only",
    "apology": "Reference for the operator",
}
"""What the bot says when it has done something."""
_AGREE = re.compile(r'"((?:clear|forget|import):[^"]+|remind:y[^"]+)"')
_JPEG = BytesIO()
Image.new("RGB", (64, 64), "teal").save(_JPEG, "JPEG")


@dataclass
class Place:
    """One chat: private, a group of two, or a topic. `said` has the kind of each message."""

    number: int
    erasures: int = 0
    said: dict[str, str] = field(default_factory=dict)
    answered: Counter[str] = field(default_factory=Counter)
    order: list[str] = field(default_factory=list)
    due: dict[str, float] = field(default_factory=dict)
    late_s: list[float] = field(default_factory=list)
    came: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    buttons: list[tuple[int, str]] = field(default_factory=list)

    @property
    def kind(self) -> str:
        """Of twenty chats, two are groups and two are topics."""
        return {16: "group", 17: "group", 18: "topic", 19: "topic"}.get(self.number % 20, "private")

    @property
    def id(self) -> int:
        return self.person if self.kind == "private" else -1_000_000_000 - self.number

    @property
    def person(self) -> int:
        return 100_000 + self.number

    @property
    def words(self) -> list[str]:
        """The words that only this chat says; of those before the last, nothing may be left."""
        return [f"zq{self.number}x{each}z" for each in range(self.erasures + 1)]

    @property
    def scopes(self) -> frozenset[str]:
        """The tags of what may be stored of this chat."""
        return frozenset({f"c:{self.id}:0", f"c:{self.id}:7", f"u:{self.person}"})

    def missing(self) -> list[str]:
        """Return the kinds of the messages without an answer."""
        return [kind for marker, kind in self.said.items() if not self.answered[marker]]

    def reminders_missing(self, until: float) -> list[str]:
        """Return the kinds of what was due until then and did not come.

        A wish that got no answer but an apology was not set.
        """
        due = [name for name, at in self.due.items() if at < until and not self.came[name]]
        wishes = [f"m{name[1:]}" for name in due]
        return [self.said[wish] for wish in wishes if self.answered[wish]]

    def disorder(self) -> int:
        """Return how many answers came after that to a later message."""
        numbers = [int(each[1:]) for each in dict.fromkeys(self.order)]
        return sum(later < earlier for earlier, later in pairwise(numbers))

    def erased(self) -> None:
        """Note that all was erased: reminders that are not due yet, too."""
        self.erasures += 1
        self.due = {name: at for name, at in self.due.items() if self.came[name]}

    def notes(self, text: str, *, is_edit: bool) -> None:
        """Note what a text of the bot says."""
        self.seen.update(kind for kind, phrase in SAID.items() if phrase in text)
        self.seen["spoken of after it was erased"] += any(each in text for each in self.words[:-1])
        heard = MARKER.findall(text.partition("Heard ")[2])
        for marker in heard:
            if (name := f"r{marker[1:]}") in self.due and not self.answered[marker]:
                self.due[name] = time.time() + _REMINDER_S
            self.answered[marker] = 1 if is_edit else self.answered[marker] + 1
        self.order += [] if is_edit else heard
        for named in self.due.keys() & text.split() if not heard else ():
            self.came[named] += 1
            self.late_s.append(round(max(0.0, time.time() - self.due[named]), 1))


class MonthTelegram(LeanTelegram):
    """Notes for each chat what it was told, and which button it has; gives out files."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[int, Place] = {}
        self._markers = 0

    def message(self, place: Place, kind: str, random: Random) -> tuple[Update, str]:
        """Return the update of a message of this kind, and its marker."""
        self._markers += 1
        marker, word = f"m{self._markers}", place.words[-1]
        form = _WISHES.get(kind, _TEXTS[place.number % len(_TEXTS)])
        day, there = random.randrange(1, 29), random.choice(_PLACES)
        text = form.format(word=word, marker=marker, day=day, place=there, number=self._markers)
        if kind in ("reminder", "task"):
            place.due[f"r{self._markers}"] = time.time() + _REMINDER_S
        update = self.update(place, text)
        message: Any = update["message"]
        file = {"file_id": f"{kind}-{word}-{marker}", "file_unique_id": marker, "file_size": 800}
        size = {"width": 64, "height": 64}
        files: dict[str, object] = {
            "voice": file | {"duration": 2, "mime_type": "audio/ogg"},
            "photo": [file | size],
            "document": file | {"file_name": f"boat {random.randrange(3)}.txt"},
        }
        if kind in files:
            message |= {kind: files[kind], "caption": message.pop("text")}
            message["caption_entities"] = message.pop("entities", [])
        if kind in PRIVATE:
            message.pop("caption", None)
        return update, marker

    def update(self, place: Place, text: str) -> Update:
        """Return the update of a message in this chat."""
        update: dict[str, Any] = self.said(place.person, text)
        message = update["message"]
        message["from"]["first_name"] = f"Kim {place.words[-1]}"
        if place.kind != "private":
            message["chat"] = {"id": place.id, "title": "Club", "type": "supergroup"}
            message["text"] = f"@ricordo_bot {text}"
            message["entities"] = [{"type": "mention", "offset": 0, "length": 12}]
        if place.kind == "topic":
            message["chat"]["is_forum"] = True
            message |= {"message_thread_id": 7, "is_topic_message": True}
        if text.startswith("/"):
            command = {
                "type": "bot_command",
                "offset": 0,
                "length": text.find("\n") % (len(text) + 1),
            }
            message |= {"text": text, "entities": [command]}
        self.places[place.id] = place
        return update

    def edited(self, update: Mapping[str, Any], marker: str) -> tuple[Update, str]:
        """Return the update of a message whose writer has changed its marker, and the new one."""
        self._markers += 1
        new, message = f"m{self._markers}", dict(update["message"])
        message |= {"text": message["text"].replace(marker, new), "edit_date": int(time.time())}
        return {"update_id": next(self._ids), "edited_message": message}, new

    def press(self, place: Place) -> Update:
        """Return the update of a press of the button that agrees to what the bot asked last."""
        message_id, pressed = place.buttons[-1]
        chat: Any = self.update(place, "")["message"]
        shown = chat | {"message_id": message_id, "text": "?"}
        query = {"id": "1", "from": chat["from"], "message": shown, "data": pressed}
        return {"update_id": next(self._ids), "callback_query": query | {"chat_instance": "1"}}

    def _handle(self, path: str, body: bytes, transport: Any) -> None:
        name = unquote(path.rpartition("/")[2])
        if path.startswith("/file/"):
            content = f"About the boat {name}: it has two masts and was built of oak.\n" * 12
            answer(transport, _JPEG.getvalue() if name.startswith("photo") else content.encode())
            return
        super()._handle(path, body, transport)
        given = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        place = self.places.get(int(given.get("chat_id", 0)))
        if place and name in ("sendMessage", "editMessageText"):
            place.notes(given["text"], is_edit=name != "sendMessage")

    def _sent(self, given: Mapping[str, str]) -> dict[str, object]:
        message = super()._sent(given)
        self.odd.clear()  # here no answer has the text that the parent class expects
        place = self.places.get(int(given["chat_id"]))
        if place and (found := _AGREE.search(given.get("reply_markup", ""))):
            place.buttons.append((int(str(message["message_id"])), found[1]))
        return message
