"""The people of the playground, their chats and messages; a group has topics.

Their ids are the same at every start, so that the bot recognizes them. No message is sent here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import Literal

from bot.reply.parts import Button, Entity
from memory.store.keys import Scope

ADMIN_ID = 1
"""Anna operates this bot and may use the admin commands."""

GUEST = (99, "Maya")
"""The person of the made-up year; she has a private chat and is not in the group."""

GROUP_ID, GROUP = -1_000_000_000_001, "Sailing club"
_FIRST_TOPIC = 2
_MAX_PEOPLE = 8
_MAX_TOPICS = 8
_FIRST_PEOPLE = (("Anna", "en"), ("Ben", "en"))
"""They are the administrators of the group."""
_FIRST_TOPICS = ("Kitchen",)


class SceneFull(Exception):
    """Raised when the scene has its maximum of people or topics."""


@dataclass(slots=True)
class PagePerson:
    """Somebody with an account; `language` is that of their Telegram."""

    id: int
    name: str
    language: str = "en"


BOT = PagePerson(7_000_000_001, "Ricordo")
BOT_USERNAME = "ricordo_bot"


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file in a chat; `id` is set when it is kept."""

    kind: Literal["photo", "voice", "document"]
    content: bytes = field(repr=False)
    name: str = ""
    mime_type: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class PageMessage:
    """A message as it stands now; an edit makes a new value with the same id."""

    id: int
    sender: PagePerson
    text: str = ""  # with a `file` its caption
    sent_at: int = 0  # in whole Unix seconds
    entities: tuple[Entity, ...] = ()
    buttons: tuple[tuple[Button, ...], ...] = ()
    file: PageFile | None = None
    reply_to: "PageMessage | None" = field(default=None, repr=False)
    origin: "PageMessage | None" = field(default=None, repr=False)  # of a forwarded message
    edited_at: int = 0  # 0 if it was not edited
    reaction: str = ""  # the emoji of the bot
    album: str = ""  # the photos of an album have the same
    asks: bool = False  # the apps open a reply to it


@dataclass(frozen=True, slots=True)
class PageDraft:
    """What the bot has written so far, shown until `until`; it can be stopped once."""

    id: int
    text: str
    entities: tuple[Entity, ...]
    until: float
    can_stop: bool = True


@dataclass(slots=True, eq=False)
class PageChat:
    """One conversation as the page shows it: a private chat, the group, or a topic of it."""

    title: str
    chat_id: int
    speaker: PagePerson  # who writes here; in the group the last one who did
    topic_id: int = 0
    topic: str = ""
    remembered_id: int = 0  # the newest message from before this start, 0 if there is none
    draft: PageDraft | None = None
    typing_until: float = 0.0
    _messages: dict[int, PageMessage] = field(default_factory=dict, repr=False)

    @property
    def conversation(self) -> Scope:
        """The scope under which the bot stores it."""
        return Scope.of_chat(self.chat_id, self.topic_id)

    @property
    def is_group(self) -> bool:
        """Whether several people may write here."""
        return self.chat_id < 0

    @property
    def messages(self) -> list[PageMessage]:
        """The visible messages, oldest first."""
        return [self._messages[number] for number in sorted(self._messages)]

    @property
    def asking(self) -> PageMessage | None:
        """The bot's last question, if nobody has written since."""
        since = takewhile(lambda each: each.sender is BOT, reversed(self.messages))
        return next((each for each in since if each.asks), None)

    def message(self, message_id: int) -> PageMessage | None:
        """Return a message as it stands now, None if it does not exist or was deleted."""
        return self._messages.get(message_id)

    def put(self, message: PageMessage) -> None:
        """Add a message, or replace the one with the same id."""
        self._messages[message.id] = message

    def remove(self, message_id: int) -> None:
        """Delete a message for everybody."""
        self._messages.pop(message_id, None)

    def empty(self) -> None:
        """Delete all messages for everybody."""
        self._messages.clear()
        self.draft, self.typing_until, self.remembered_id = None, 0.0, 0


class Scene:
    """Two people, their private chats and a group with a topic; more can be added.

    What was added is kept in `file`, if one is given.
    """

    def __init__(self, file: Path | None = None) -> None:
        self.people: list[PagePerson] = []
        self.guest: PageChat | None = None
        self._places: list[PageChat] = []
        self._file = file
        people, topics, has_guest = _read(file)
        for name, language in people:
            self._add_person(name, language)
        self._places.append(PageChat(GROUP, GROUP_ID, self.people[0]))
        for topic in topics:
            self._add_topic(topic)
        if has_guest:
            self._add_guest()

    def __iter__(self) -> Iterator[PageChat]:
        """Go through the places in the order of the page: private chats first."""
        yield from sorted(self._places, key=lambda place: place.is_group)

    def place(self, tag: str) -> PageChat:
        """Return the place of a conversation, the first place if there is none with this tag."""
        return next((place for place in self if place.conversation.tag == tag), next(iter(self)))

    def person(self, user_id: str) -> PagePerson | None:
        """Return a person by their id as a form sends it."""
        return next((person for person in self.people if str(person.id) == user_id), None)

    def is_in(self, place: PageChat, person: PagePerson) -> bool:
        """Return whether a person can write in a place."""
        return person in self.people if place.is_group else person.id == place.chat_id

    def is_group_admin(self, user_id: int) -> bool:
        """Return whether a person administers the group."""
        return user_id in [person.id for person in self.people[: len(_FIRST_PEOPLE)]]

    def add_person(self, name: str, language: str = "en") -> PageChat:
        """Add a person, also to the group, and return their private chat; raise `SceneFull`."""
        if len(self.people) >= _MAX_PEOPLE:
            raise SceneFull
        place = self._add_person(name, language)
        self._save()
        return place

    def add_topic(self, name: str) -> PageChat:
        """Add a topic to the group and return its place; raise `SceneFull`."""
        if len(self._topics) >= _MAX_TOPICS:
            raise SceneFull
        place = self._add_topic(name)
        self._save()
        return place

    def add_guest(self) -> PageChat:
        """Add the guest if she is not there yet, and return her private chat."""
        place = self.guest or self._add_guest()
        self._save()
        return place

    def remove_guest(self) -> None:
        """Take the guest and her chat off the page."""
        if self.guest is not None:
            self._places.remove(self.guest)
            self.guest = None
            self._save()

    def switch_language(self, person: PagePerson, language: str) -> None:
        """Change the language of a person's Telegram."""
        person.language = language
        self._save()

    @property
    def _topics(self) -> list[str]:
        return [place.topic for place in self._places if place.topic]

    def _add_person(self, name: str, language: str) -> PageChat:
        person = PagePerson(len(self.people) + 1, name, language)
        self.people.append(person)
        return self._add(PageChat(name, person.id, person))

    def _add_guest(self) -> PageChat:
        person = PagePerson(*GUEST)
        self.guest = self._add(PageChat(person.name, person.id, person))
        return self.guest

    def _add_topic(self, name: str) -> PageChat:
        number = _FIRST_TOPIC + len(self._topics)
        return self._add(PageChat(f"{GROUP} · {name}", GROUP_ID, self.people[0], number, name))

    def _add(self, place: PageChat) -> PageChat:
        self._places.append(place)
        return place

    def _save(self) -> None:
        if self._file is None:
            return
        people = [(each.name, each.language) for each in self.people]
        kept = {"people": people, "topics": self._topics, "guest": self.guest is not None}
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
