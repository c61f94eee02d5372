"""The people of the playground and their chats: private chats, a group and its topics.

Their ids are the same at every start, so that the bot recognizes them. No message is sent here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.playground.bot_api import BotApiServer, ChatMessage, LocalChat, LocalPerson, Topic
from bot.playground.bot_api.chats import Member
from memory.store.keys import Scope

ADMIN_ID = 1
"""Anna operates this bot and may use the admin commands."""

GUEST = (99, "Maya")
"""The person of the made-up year; she has a private chat and is not in the group."""

_GROUP_NUMBER = 1
_FIRST_TOPIC = 2
_MAX_PEOPLE = 8
_MAX_TOPICS = 8
_FIRST_PEOPLE = (("Anna", "en"), ("Ben", "en"))
_FIRST_TOPICS = ("Kitchen",)


class SceneFull(Exception):
    """Raised when the scene has its maximum of people or topics."""


@dataclass(slots=True, eq=False)
class PageChat:
    """One conversation as the page shows it.

    `speaker` is the person who writes here; in a group it is the last one who did. `remembered_id`
    is the newest message from before this start, 0 if there is none.
    """

    title: str
    chat: LocalChat
    speaker: LocalPerson
    topic: Topic | None = None
    remembered_id: int = 0

    @property
    def conversation(self) -> Scope:
        """The scope under which the bot stores it."""
        return Scope.of_chat(self.chat.id, self.topic.id if self.topic else 0)

    @property
    def is_group(self) -> bool:
        """Whether several people may write here."""
        return self.chat.kind != "private"

    @property
    def messages(self) -> list[ChatMessage]:
        """The visible messages, oldest first."""
        here = self.topic.id if self.topic else 0
        shown = [m for m in self.chat.messages if m.topic_id == here]
        return sorted(shown, key=lambda message: message.id)


class Scene:
    """Two people, their private chats and a group with a topic; more can be added.

    What was added is kept in `file`, if one is given.
    """

    def __init__(self, telegram: BotApiServer, file: Path | None = None) -> None:
        self.people: list[LocalPerson] = []
        self._places: list[PageChat] = []
        self._telegram = telegram
        self._file = file
        people, topics, has_guest = _read(file)
        founders = [self._person(*each) for each in people]
        self._group = telegram.forum("Sailing club", founders[: len(_FIRST_PEOPLE)], _GROUP_NUMBER)
        for person in founders[len(_FIRST_PEOPLE) :]:
            self._join(person)
        self._add_place(self._group.title, founders[0])
        for topic in topics:
            self._topic(topic)
        self.guest = self._guest() if has_guest else None

    def __iter__(self) -> Iterator[PageChat]:
        """Go through the places in the order of the page: private chats first."""
        yield from sorted(self._places, key=lambda place: place.is_group)

    def place(self, tag: str) -> PageChat:
        """Return the place of a conversation, the first place if there is none with this tag."""
        return next((place for place in self if place.conversation.tag == tag), next(iter(self)))

    def person(self, user_id: str) -> LocalPerson | None:
        """Return a person by their id as a form sends it."""
        return next((person for person in self.people if str(person.id) == user_id), None)

    def add_person(self, name: str, language: str = "en") -> PageChat:
        """Add a person, also to the group, and return their private chat; raise `SceneFull`."""
        if len(self.people) >= _MAX_PEOPLE:
            raise SceneFull
        person = self._person(name, language)
        self._join(person)
        self._save()
        return next(place for place in self if place.chat.id == person.id)

    def add_topic(self, name: str) -> PageChat:
        """Add a topic to the group and return its place; raise `SceneFull`."""
        if len(self._group.topics) >= _MAX_TOPICS:
            raise SceneFull
        place = self._topic(name)
        self._save()
        return place

    def add_guest(self) -> PageChat:
        """Add the guest if she is not there yet, and return her private chat."""
        if self.guest is None:
            self.guest = self._guest()
            self._save()
        return self.guest

    def remove_guest(self) -> None:
        """Take the guest and her chat off the page."""
        if self.guest is not None:
            self._places.remove(self.guest)
            self.guest = None
            self._save()

    def switch_language(self, person: LocalPerson, language: str) -> None:
        """Change the language of a person's Telegram."""
        person.switch_language(language)
        self._save()

    def _person(self, name: str, language: str) -> LocalPerson:
        person = self._telegram.user(len(self.people) + 1, name, language_code=language)
        self.people.append(person)
        self._places.append(PageChat(name, self._telegram.private_chat(person), person))
        return person

    def _guest(self) -> PageChat:
        person = self._telegram.user(*GUEST, language_code="en")
        place = PageChat(person.user.first_name, self._telegram.private_chat(person), person)
        self._places.append(place)
        return place

    def _join(self, person: LocalPerson) -> None:
        self._group.members[person.id] = Member(person.user, "member")

    def _topic(self, name: str) -> PageChat:
        topic = self._group.add_topic(name, _FIRST_TOPIC + len(self._group.topics))
        return self._add_place(f"{self._group.title} · {name}", self.people[0], topic)

    def _add_place(self, title: str, speaker: LocalPerson, topic: Topic | None = None) -> PageChat:
        place = PageChat(title, self._group, speaker, topic)
        self._places.append(place)
        return place

    def _save(self) -> None:
        if self._file is None:
            return
        people = [(each.user.first_name, each.user.language_code) for each in self.people]
        topics = [topic.name for topic in self._group.topics.values()]
        kept = {"people": people, "topics": topics, "guest": self.guest is not None}
        self._file.write_text(json.dumps(kept), "utf-8")


def _read(file: Path | None) -> tuple[list[tuple[str, str]], list[str], bool]:
    """Return people (name, language), topics, and whether the guest is there.

    If the file cannot be read, these are the people and topics of the first start.
    """
    try:
        kept = json.loads(file.read_text("utf-8")) if file else {}
        people = [(str(name), str(language)) for name, language in kept["people"]]
        topics = [str(name) for name in kept["topics"]]
        has_guest = kept.get("guest") is True
    except (OSError, ValueError, KeyError, TypeError):
        return list(_FIRST_PEOPLE), list(_FIRST_TOPICS), False
    if len(people) < len(_FIRST_PEOPLE):
        return list(_FIRST_PEOPLE), list(_FIRST_TOPICS), False
    return people[:_MAX_PEOPLE], topics[:_MAX_TOPICS], has_guest
