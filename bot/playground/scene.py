"""Who plays in the playground and where: people, their private chats, a group and its topics.

The same ids at every start, so that the bot knows everybody again. Nothing is said here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from bot.playground.bot_api import BotApiServer, Chat, Message, Person, Topic
from bot.playground.bot_api.chats import Member
from memory.keys import Conversation

_GROUP_NUMBER = 1
_FIRST_TOPIC = 2
_MOST_PEOPLE = 8
_MOST_TOPICS = 8


class SceneFull(Exception):  # noqa: N818 - says when
    """Raised when nobody and nothing more fits on the page."""


@dataclass(slots=True, eq=False)
class Place:
    """One conversation as it stands on the page; `speaker` is who spoke here last, or might."""

    title: str
    chat: Chat
    speaker: Person
    topic: Topic | None = None

    @property
    def conversation(self) -> Conversation:
        """The bot's name for it."""
        return Conversation.of_chat(self.chat.id, self.topic.id if self.topic else 0)

    @property
    def is_group(self) -> bool:
        """Whether several people may speak here."""
        return self.chat.kind != "private"

    @property
    def messages(self) -> list[Message]:
        """What is to be seen here, oldest first; not that a topic was created."""
        here = self.topic.id if self.topic else 0
        return [m for m in self.chat.messages if m.topic_id == here and not m.service]


class Scene:
    """Two people, their private chats and a group with a topic; more may come."""

    def __init__(self, telegram: BotApiServer) -> None:
        self.people: list[Person] = []
        self._places: list[Place] = []
        self._telegram = telegram
        anna, ben = (self._person(name) for name in ("Anna", "Ben"))
        self._group = telegram.forum("Sailing club", [anna, ben], _GROUP_NUMBER)
        self._add_place(self._group.title, anna)
        self.add_topic("Kitchen")

    def __iter__(self) -> Iterator[Place]:
        """Go through the places in the order of the page."""
        yield from sorted(self._places, key=lambda place: place.is_group)

    def place(self, tag: str) -> Place:
        """Return the place of a conversation, the first one when there is none of this name."""
        return next((place for place in self if place.conversation.tag == tag), next(iter(self)))

    def person(self, user_id: str) -> Person | None:
        """Return somebody by their id as a form sends it."""
        return next((person for person in self.people if str(person.id) == user_id), None)

    def add_person(self, name: str) -> Place:
        """Let somebody join, the group too; return their private chat. Raise `SceneFull`."""
        if len(self.people) >= _MOST_PEOPLE:
            raise SceneFull
        person = self._person(name)
        self._group.members[person.id] = Member(person.user, "member")
        return self._places[-1]

    def add_topic(self, name: str) -> Place:
        """Open a topic in the group and return it; raise `SceneFull`."""
        topics = self._group.topics
        if len(topics) >= _MOST_TOPICS:
            raise SceneFull
        topic = self._group.topic(name, _FIRST_TOPIC + len(topics))
        return self._add_place(f"{self._group.title} · {name}", self.people[0], topic)

    def _person(self, name: str) -> Person:
        person = self._telegram.user(len(self.people) + 1, name)
        self.people.append(person)
        self._places.append(Place(name, self._telegram.private_chat(person), person))
        return person

    def _add_place(self, title: str, speaker: Person, topic: Topic | None = None) -> Place:
        place = Place(title, self._group, speaker, topic)
        self._places.append(place)
        return place
