"""The people of the playground, their chats and messages, and what they do as raw updates.

Their ids are the same at every start, so that the bot recognizes them. A raw update has the fields
that Telegram sends; an absent value is an absent field. No message is sent here.
"""

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, Literal

from bot.parsing.pictures import format_by_signature
from bot.reply.parts import Button, Entity, utf16_length
from memory.store.keys import Scope

ADMIN_ID = 1  # Anna operates this bot and may use the admin commands

GUEST = (99, "Maya")  # of the made-up year; she has a private chat and is not in the group

GROUP_ID, GROUP = -1_000_000_000_001, "Sailing club"
_FIRST_TOPIC = 2
_MAX_PEOPLE = 8
_MAX_TOPICS = 8
_FIRST_PEOPLE = (("Anna", "en"), ("Ben", "en"))  # they are the administrators of the group
_FIRST_TOPICS = ("Kitchen",)

_MENTION = re.compile(r"(?<!\w)@[a-zA-Z0-9_]{4,32}(?!\w)")
_COMMAND = re.compile(r"(?<![\w/<>])/[a-zA-Z0-9_]{1,64}(?:@[a-zA-Z0-9_]{3,32})?(?![\w/<>@])")
_PIXELS = 512


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
DISLIKE = "👎"


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
    notice: str = ""  # the answer to a pressed button, until a person does something else
    by_id: dict[int, PageMessage] = field(default_factory=dict, repr=False)

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
        return [self.by_id[number] for number in sorted(self.by_id)]

    @property
    def asking(self) -> PageMessage | None:
        """The bot's last question, if nobody has written since."""
        since = takewhile(lambda each: each.sender is BOT, reversed(self.messages))
        return next((each for each in since if each.asks), None)

    def put(self, message: PageMessage) -> None:
        """Add a message, or replace the one with the same id."""
        self.by_id[message.id] = message

    def empty(self) -> None:
        """Delete all messages for everybody."""
        self.by_id.clear()
        self.draft, self.typing_until, self.notice, self.remembered_id = None, 0.0, "", 0


class Scene:
    """Two people, their private chats and a group with a topic; `file` keeps what is added."""

    def __init__(self, file: Path | None = None) -> None:
        self.people: list[PagePerson] = []
        self.guest: PageChat | None = None
        self._places: list[PageChat] = []
        self._file: Path | None = None
        people, topics, has_guest = _read(file)
        for name, language in people:
            self.add_person(name, language)
        self._places.append(PageChat(GROUP, GROUP_ID, self.people[0]))
        for topic in topics:
            self.add_topic(topic)
        if has_guest:
            self.add_guest()
        self._file = file  # what is added from now on is kept

    def __iter__(self) -> Iterator[PageChat]:
        """Go through the places in the order of the page: private chats first."""
        yield from sorted(self._places, key=lambda place: place.is_group)

    def place(self, tag: str) -> PageChat:
        """Return the place of a conversation, the first place if there is none with this tag."""
        return next((place for place in self if place.conversation.tag == tag), next(iter(self)))

    def person(self, user_id: str) -> PagePerson | None:
        """Return a person by their id as a form sends it."""
        return next((person for person in self.people if str(person.id) == user_id), None)

    def is_group_admin(self, user_id: int) -> bool:
        """Return whether a person administers the group."""
        return user_id in [person.id for person in self.people[: len(_FIRST_PEOPLE)]]

    def add_person(self, name: str, language: str = "en") -> PageChat:
        """Add a person, also to the group, and return their private chat; raise `SceneFull`."""
        if len(self.people) >= _MAX_PEOPLE:
            raise SceneFull
        person = PagePerson(len(self.people) + 1, name, language)
        self.people.append(person)
        return self._add(PageChat(name, person.id, person))

    def add_topic(self, name: str) -> PageChat:
        """Add a topic to the group and return its place; raise `SceneFull`."""
        if len(self._topics) >= _MAX_TOPICS:
            raise SceneFull
        number = _FIRST_TOPIC + len(self._topics)
        return self._add(PageChat(f"{GROUP} · {name}", GROUP_ID, self.people[0], number, name))

    def add_guest(self) -> PageChat:
        """Add the guest, and return her private chat."""
        person = PagePerson(*GUEST)
        self.guest = PageChat(person.name, person.id, person)
        return self._add(self.guest)

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

    def _add(self, place: PageChat) -> PageChat:
        self._places.append(place)
        self._save()
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
    with suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(file.read_text("utf-8")) if file else {}
        people = [(str(name), str(language)) for name, language in kept["people"]]
        topics = [str(name) for name in kept["topics"]]
        if len(people) >= len(_FIRST_PEOPLE):
            return people[:_MAX_PEOPLE], topics[:_MAX_TOPICS], kept.get("guest") is True
    return list(_FIRST_PEOPLE), list(_FIRST_TOPICS), False


def uploaded(content: bytes, name: str, mime_type: str) -> PageFile:
    """Return a file as Telegram's apps send it: as a photo, a voice message or a document."""
    format_ = format_by_signature(content)
    if format_ and mime_type == f"image/{format_.lower()}":
        return PageFile("photo", content, name, mime_type)
    is_sound = mime_type.startswith("audio/")
    return PageFile("voice" if is_sound else "document", content, name, mime_type)


def find_entities(text: str) -> tuple[Entity, ...]:
    """Return the mentions and commands in what a person wrote, in their order."""
    found = [
        Entity(kind, utf16_length(text[: match.start()]), utf16_length(match[0]))
        for kind, pattern in (("mention", _MENTION), ("bot_command", _COMMAND))
        for match in pattern.finditer(text)
    ]
    return tuple(sorted(found, key=lambda entity: entity.offset))


def raw_message(place: PageChat, message: PageMessage) -> dict[str, Any]:
    """Return a Message; the message that it replies to has no reply of its own."""
    replied = message.reply_to
    raw = {
        "message_id": message.id,
        "from": _user(message.sender),
        "chat": raw_chat(place),
        "date": message.sent_at,
    } | _present(
        edit_date=message.edited_at,
        message_thread_id=place.topic_id,
        is_topic_message=bool(place.topic_id),
        media_group_id=message.album,
        reply_to_message=replied and raw_message(place, replace(replied, reply_to=None)),
    )
    text, entities = ("caption", "caption_entities") if message.file else ("text", "entities")
    raw |= _present(**{text: message.text, entities: list(map(_entity, message.entities))})
    if message.file:
        raw[message.file.kind] = _media(message.file)
    rows = [
        [_present(text=each.text, callback_data=each.callback_data) for each in row]
        for row in message.buttons
    ]
    return raw | ({"reply_markup": {"inline_keyboard": rows}} if rows else {})


def raw_press(
    press_id: int, place: PageChat, message: PageMessage, callback_data: str
) -> dict[str, Any]:
    """Return the CallbackQuery of a button that the speaker presses."""
    return {
        "id": str(press_id),
        "from": _user(place.speaker),
        "message": raw_message(place, message),
        "chat_instance": str(place.chat_id),
        "data": callback_data,
    }


def raw_dislike(place: PageChat, message: PageMessage, at: int) -> dict[str, Any]:
    """Return the MessageReactionUpdated of a 👎 that the speaker puts on a message."""
    reaction = {"old_reaction": [], "new_reaction": [{"type": "emoji", "emoji": DISLIKE}]}
    who = {"chat": raw_chat(place), "message_id": message.id, "user": _user(place.speaker)}
    return who | {"date": at} | reaction


def raw_chat(place: PageChat) -> dict[str, Any]:
    """Return a Chat."""
    if place.is_group:
        return {"id": place.chat_id, "title": GROUP, "type": "supergroup", "is_forum": True}
    return {"id": place.chat_id, "first_name": place.speaker.name, "type": "private"}


def _user(person: PagePerson) -> dict[str, Any]:
    about = {"username": BOT_USERNAME} if person == BOT else {"language_code": person.language}
    return {"id": person.id, "is_bot": person == BOT, "first_name": person.name} | about


def _entity(entity: Entity) -> dict[str, Any]:
    where = {"type": entity.type, "offset": entity.offset, "length": entity.length}
    return where | _present(url=entity.url, language=entity.language)


def _media(file: PageFile) -> object:
    stored = {"file_id": file.id, "file_unique_id": f"u{file.id}", "file_size": len(file.content)}
    if file.kind == "photo":
        return [stored | {"width": _PIXELS, "height": _PIXELS}]
    stored |= _present(file_name=file.name, mime_type=file.mime_type)
    return stored | ({"duration": 1} if file.kind == "voice" else {})


def _present(**fields: object) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
