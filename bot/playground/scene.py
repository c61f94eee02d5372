"""Who plays in the playground and where: people, their private chats, a group and its topics.

The ids are the same at every start, so that the bot knows everybody again. Nothing is said here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.playground.bot_api import BotApiServer, Chat, Message, Person, Topic
from bot.playground.bot_api.chats import Member
from memory.store.keys import Scope

ADMIN_ID = 1
"""Anna operates this bot: she may use the admin commands."""

_GROUP_NUMBER = 1
_FIRST_TOPIC = 2
_MAX_PEOPLE = 8
_MAX_TOPICS = 8
_FIRST_PEOPLE = (("Anna", "en"), ("Ben", "en"))
_FIRST_TOPICS = ("Kitchen",)


class SceneFull(Exception):  # noqa: N818 - says when
    """Raised when the page has no room for another person or topic."""


@dataclass(slots=True, eq=False)
class Place:
    """One conversation as it stands on the page.

    `speaker` is the person who spoke here last, or may speak. `remembered_id` is the newest message
    that was said before this start, 0 without one.
    """

    title: str
    chat: Chat
    speaker: Person
    topic: Topic | None = None
    remembered_id: int = 0

    @property
    def conversation(self) -> Scope:
        """The bot's name for it."""
        return Scope.of_chat(self.chat.id, self.topic.id if self.topic else 0)

    @property
    def is_group(self) -> bool:
        """Whether several people may speak here."""
        return self.chat.kind != "private"

    @property
    def messages(self) -> list[Message]:
        """The visible messages, oldest first, without service messages."""
        here = self.topic.id if self.topic else 0
        shown = [m for m in self.chat.messages if m.topic_id == here and not m.service]
        return sorted(shown, key=lambda message: message.id)


class Scene:
    """Two people, their private chats and a group with a topic; more may join.

    People and topics that were added are kept in `file`, if one is given.
    """

    def __init__(self, telegram: BotApiServer, file: Path | None = None) -> None:
        self.people: list[Person] = []
        self._places: list[Place] = []
        self._telegram = telegram
        self._file = file
        people, topics = _read(file)
        founders = [self._person(*each) for each in people]
        self._group = telegram.forum("Sailing club", founders[: len(_FIRST_PEOPLE)], _GROUP_NUMBER)
        for person in founders[len(_FIRST_PEOPLE) :]:
            self._join(person)
        self._add_place(self._group.title, founders[0])
        for topic in topics:
            self._topic(topic)

    def __iter__(self) -> Iterator[Place]:
        """Go through the places in the order of the page."""
        yield from sorted(self._places, key=lambda place: place.is_group)

    def place(self, tag: str) -> Place:
        """Return the place of a conversation, the first place if none has this name."""
        return next((place for place in self if place.conversation.tag == tag), next(iter(self)))

    def person(self, user_id: str) -> Person | None:
        """Return a person by their id as a form sends it."""
        return next((person for person in self.people if str(person.id) == user_id), None)

    def add_person(self, name: str, language: str = "en") -> Place:
        """Let a person join, the group too; return their private chat. Raise `SceneFull`."""
        if len(self.people) >= _MAX_PEOPLE:
            raise SceneFull
        person = self._person(name, language)
        self._join(person)
        self._save()
        return next(place for place in self if place.chat.id == person.id)

    def add_topic(self, name: str) -> Place:
        """Open a topic in the group and return it; raise `SceneFull`."""
        if len(self._group.topics) >= _MAX_TOPICS:
            raise SceneFull
        place = self._topic(name)
        self._save()
        return place

    def switch_language(self, person: Person, language: str) -> None:
        """Let a person's Telegram speak another language."""
        person.switch_language(language)
        self._save()

    def _person(self, name: str, language: str) -> Person:
        person = self._telegram.user(len(self.people) + 1, name, language_code=language)
        self.people.append(person)
        self._places.append(Place(name, self._telegram.private_chat(person), person))
        return person

    def _join(self, person: Person) -> None:
        self._group.members[person.id] = Member(person.user, "member")

    def _topic(self, name: str) -> Place:
        topic = self._group.topic(name, _FIRST_TOPIC + len(self._group.topics))
        return self._add_place(f"{self._group.title} · {name}", self.people[0], topic)

    def _add_place(self, title: str, speaker: Person, topic: Topic | None = None) -> Place:
        place = Place(title, self._group, speaker, topic)
        self._places.append(place)
        return place

    def _save(self) -> None:
        if self._file is None:
            return
        people = [(each.user.first_name, each.user.language_code) for each in self.people]
        topics = [topic.name for topic in self._group.topics.values()]
        self._file.write_text(json.dumps({"people": people, "topics": topics}), "utf-8")


def _read(file: Path | None) -> tuple[list[tuple[str, str]], list[str]]:
    """Return people (name, language) and topics; the first ones if the file cannot be read."""
    try:
        kept = json.loads(file.read_text("utf-8")) if file else {}
        people = [(str(name), str(language)) for name, language in kept["people"]]
        topics = [str(name) for name in kept["topics"]]
    except (OSError, ValueError, KeyError, TypeError):
        return list(_FIRST_PEOPLE), list(_FIRST_TOPICS)
    if len(people) < len(_FIRST_PEOPLE):
        return list(_FIRST_PEOPLE), list(_FIRST_TOPICS)
    return people[:_MAX_PEOPLE], topics[:_MAX_TOPICS]
