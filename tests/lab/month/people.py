"""Telegram and the people of the month: what they write, and what they see.

Every text has a marker of its own and a word that only this chat says. The model answers with the
marker, so each chat shows which texts were answered, how often and in which order.
"""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from random import Random
from typing import Any
from urllib.parse import parse_qs

import orjson

from tests.lab.lean_telegram import LeanTelegram, Update
from tests.lab.month.model import MARKER

ERASE = "Erase"
_REMINDER_S = 60
_TEXTS = (
    "The boat {word} lies in Oulu since {day}, near the old {place}. {marker}?",
    "Das Boot {word} liegt seit {day} in Oulu, neben {place}. {marker}?",
    "El barco {word} está en Oulu desde {day}, cerca de {place}. {marker}?",
    "قایق {word} از {day} در اولو است، نزدیک {place}. {marker}؟",
    "Лодка {word} стоит в Оулу с {day}, рядом с {place}. {marker}?",
)
_PLACES = ("harbour", "Leuchtturm", "mercado", "پل", "маяк", "mill", "Kirche", "puerto", "بازار")


@dataclass
class Place:
    """One chat: private, a group of two, or a topic."""

    number: int
    said: list[str] = field(default_factory=list)
    answered: Counter[str] = field(default_factory=Counter)
    order: list[str] = field(default_factory=list)
    due: dict[str, float] = field(default_factory=dict)
    late_s: list[float] = field(default_factory=list)
    reminded: Counter[str] = field(default_factory=Counter)
    apologies: int = 0
    forgotten: bool = False

    @property
    def kind(self) -> str:
        """Of twenty chats, two are groups and two are topics."""
        return {16: "group", 17: "group", 18: "topic", 19: "topic"}.get(self.number % 20, "private")

    @property
    def id(self) -> int:
        """The id of the chat in Telegram."""
        return self.person if self.kind == "private" else -1_000_000_000 - self.number

    @property
    def person(self) -> int:
        """The id of the person who speaks."""
        return 100_000 + self.number

    @property
    def word(self) -> str:
        """The word that only this chat says."""
        return f"zq{self.number}x"

    @property
    def scopes(self) -> frozenset[str]:
        """The tags of what may be stored of this chat."""
        return frozenset({f"c:{self.id}:0", f"c:{self.id}:7", f"u:{self.person}"})

    def missing(self) -> list[str]:
        """Return the texts without an answer."""
        return [each for each in self.said if not self.answered[each]]

    def reminders_missing(self, until: float) -> int:
        """Return how many reminders that were due until then did not come."""
        return sum(at < until and not self.reminded[name] for name, at in self.due.items())

    def disorder(self) -> int:
        """Return how many answers came after that to a later text."""
        numbers = [int(each[1:]) for each in dict.fromkeys(self.order)]
        return sum(later < earlier for earlier, later in pairwise(numbers))


class MonthTelegram(LeanTelegram):
    """Notes for each chat what it was told, and which buttons it has."""

    def __init__(self) -> None:
        super().__init__()
        self.places: dict[int, Place] = {}
        self.buttons: dict[int, tuple[int, str]] = {}
        self._markers = 0

    def texts(self, place: Place, random: Random) -> Iterator[tuple[str, str]]:
        """Yield texts and their markers, one in thirty with a reminder."""
        while True:
            self._markers += 1
            marker = f"m{self._markers}"
            form = _TEXTS[place.number % len(_TEXTS)]
            text = form.format(
                word=place.word,
                day=random.randrange(1, 29),
                place=random.choice(_PLACES),
                marker=marker,
            )
            if random.random() < 1 / 30:
                text = f"Remind me in 1 minutes of {place.word} r{self._markers}. {marker}?"
            yield text, marker

    def update(self, place: Place, text: str) -> Update:
        """Return the update of a message in this chat."""
        update: dict[str, Any] = self.said(place.person, text)
        message = update["message"]
        if place.kind != "private":
            message["chat"] = {"id": place.id, "title": "Club", "type": "supergroup"}
            message["text"] = f"@ricordo_bot {text}"
            message["entities"] = [{"type": "mention", "offset": 0, "length": 12}]
        if place.kind == "topic":
            message["chat"]["is_forum"] = True
            message |= {"message_thread_id": 7, "is_topic_message": True}
        if text.startswith("/"):
            command = {"type": "bot_command", "offset": 0, "length": len(text)}
            message |= {"text": text, "entities": [command]}
        self.places[place.id] = place
        return update

    def edited(self, update: Mapping[str, Any], marker: str, new: str) -> Update:
        """Return the update of a message whose marker was changed by its writer."""
        message = dict(update["message"])
        message |= {"text": message["text"].replace(marker, new), "edit_date": int(time.time())}
        return {"update_id": next(self._ids), "edited_message": message}

    def press(self, place: Place, message_id: int, pressed: str) -> Update:
        """Return the update of a press of a button under the bot's message."""
        chat = self.said(place.person, "")["message"]
        assert isinstance(chat, dict)
        query = {"id": str(next(self._ids)), "from": chat["from"], "chat_instance": "1"}
        shown = {"message_id": message_id, "chat": chat["chat"], "date": chat["date"], "text": "?"}
        return {
            "update_id": next(self._ids),
            "callback_query": query | {"message": shown, "data": pressed},
        }

    def _handle(self, path: str, body: bytes, transport: Any) -> None:
        if path.endswith(("sendMessage", "editMessageText")):
            self._read_buttons(body)
        super()._handle(path, body, transport)

    def _read_buttons(self, body: bytes) -> None:
        given = {name: values[0] for name, values in parse_qs(body.decode()).items()}
        rows = orjson.loads(given.get("reply_markup", "{}")).get("inline_keyboard", [])
        found = [each["callback_data"] for row in rows for each in row if each["text"] == ERASE]
        if found:
            self.buttons[int(given["chat_id"])] = (0, found[0])

    def _sent(self, chat: int, text: str) -> object:
        message = super()._sent(chat, text)
        self.odd = 0
        assert isinstance(message, dict)
        if chat in self.buttons and not self.buttons[chat][0]:
            self.buttons[chat] = (message["message_id"], self.buttons[chat][1])
        place = self.places.get(chat)
        if place is None:
            return message
        if text.startswith("Heard"):
            for marker in MARKER.findall(text):
                place.answered[marker] += 1
                place.order.append(marker)
        elif "Reference for the operator" in text:
            place.apologies += 1
        elif named := next((each for each in place.due if each in text.split()), None):
            place.reminded[named] += 1
            place.late_s.append(time.time() - place.due[named])
        return message

    def expect_reminder(self, place: Place, text: str) -> None:
        """Note when the reminder that this text asks for is due."""
        if text.startswith("Remind me"):
            named = text.partition(f"{place.word} ")[2].partition(".")[0]
            place.due[named] = time.time() + _REMINDER_S
