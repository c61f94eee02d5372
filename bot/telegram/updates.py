"""The values that a Telegram update is reduced to, and the form in which a message is stored.

Plain data: `update_reader` makes it from Telegram's types, with the functions at the end for the
sender, and everything behind intake uses it.
"""

import re
import unicodedata
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import orjson
import telegram

from bot.reply.parts import well_formed
from memory.behaviors.context import Person
from memory.message import Message
from memory.queue.open_turn import stamped, unstamped
from memory.text.untrusted_text import SYMBOLS, letters

ASK, NEW, RETRY = "ask", "new", "retry"
"""Commands whose words, or the file above them, are a message."""
FILE_MARK = "📎"  # stands before the name of a file in a reply; anybody may have given the name
EDIT_MARK = "✎"  # in every language the question for the new wording of a memory begins with it
MediaKind = Literal["document", "voice", "photo"]
"""How the file of a message is read."""
MEDIA: tuple[MediaKind, ...] = ("document", "voice", "photo")
WITH_WORDS = ("text", *MEDIA)
"""Kinds of messages that a model answers: their text was written by the person."""
EDITABLE = ("text", "document", "photo")  # kinds of messages whose words people can edit
ALONE = ("command", "document", "edit")
"""Kinds that are answered alone: about a file is only its answer; an edit changes earlier words."""
MessageKind = Literal["text", "command", "unsupported", "edit", "again"] | MediaKind


@dataclass(frozen=True, slots=True)
class Sender:
    """The author of a message; `is_person` is false for a channel, a chat or an anonymous admin."""

    id: int
    name: str
    first_name: str = ""
    last_name: str = ""
    language: str = "en"
    is_person: bool = True

    @property
    def speaker(self) -> Person:
        """The author as behaviors know them."""
        id_ = self.id if self.is_person else 0
        return Person(id_, self.first_name, self.last_name, self.language)


PHOTO_MARK = "[photo]"  # begins the text that is stored in place of a photo
REFUSED_MARK = "[refused]"  # ends what stands for a photo that the model must not see again
STICKER_FILE = "sticker.webp"  # the name of every sticker; Telegram does not send it as a photo


@dataclass(frozen=True, slots=True)
class SentFile:
    """A file that was sent to us and not downloaded yet."""

    file_id: str  # identifies the file to `TelegramChat.download`
    name: str  # one line that can be shown
    mime_type: str
    nbytes: int  # 0 if unknown
    nonce: str = ""  # of the button under our question about it
    pasted: str = ""  # a text behind a command, which is not fetched
    read_as: str = ""  # that command, or the one in the caption, or a word of a feature's button
    seconds: int = 0  # the length of a sound


@dataclass(frozen=True, slots=True)
class ReplyTarget:
    """The message that a message replies to, as Telegram gave it with the reply."""

    message_id: int  # 0 if it stands in another chat or topic: then at most the quote is known
    author: str
    sent_at: int
    text: str
    quote: str = ""  # the part that the person who replies marked
    unseen: str = ""  # names its photo, video or sound
    author_id: int = 0  # 0 if it is unknown
    is_ours: bool = False  # we wrote it
    is_own: bool = False  # the person who replies wrote it
    photo: str = ""  # the file id of its photo


@dataclass(frozen=True, slots=True)
class Replaced:
    """What goes when a question is answered again, or when its words change."""

    question: tuple[Message, ...]  # its messages as the history had them, with the new words
    answer_ids: tuple[int, ...]  # they showed the former answer
    seqs: tuple[int, ...]  # messages of the history from which nothing may be remembered
    cuts: str = ""  # the erasures before which it was taken out (`Forgetting.read_cuts`)
    learns: bool = True  # what was said since is learned again


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One message addressed to us.

    What `text` holds depends on `kind`. For text, document, voice and photo it is what was written,
    for a command its arguments. "unsupported": the name of what was sent (video, sticker, ...).
    "edit": the new text of a message that was sent before. "again": our button "ask again" was
    pressed; `replied_to` is the question, `text` the nonce.
    """

    update_id: int
    chat_id: int
    topic_id: int  # 0 outside topics
    is_group: bool
    message_id: int  # 0 if there was none: being added to a group is read as /start there
    sent_at: int  # in Unix seconds
    sender: Sender
    kind: MessageKind
    text: str
    command: str = ""  # without "/" and bot name; "new" and "retry" also stand before a text
    file: SentFile | None = None
    is_first_party: bool = True  # false if it was forwarded, or sent through another bot
    replied_to: int = 0  # the message that it answers
    reply: ReplyTarget | None = None
    forwarded_from: str = ""  # who wrote a forwarded message
    forwarded_at: int = 0  # when
    unseen: str = ""  # names the photo, video or sound whose caption the text is
    edited_at: int = 0  # when it got this text; `update_id` is then that of the edit
    replaced: Replaced | None = None  # set once a question is answered again; it holds the text
    trace: str = ""  # its trace, "" if nobody traces
    agreed: str = ""  # nonce of a question about a tool; the text is the label of its button
    album: str = ""  # Telegram's id of the album that it was sent in
    replied_at: int = 0  # of a command: when the message was sent that it answers

    @property
    def is_task(self) -> bool:
        """Whether nobody sent it: a task that is due, or the `/back` when an `/off` is over."""
        return self.update_id < 0

    @property
    def is_file(self) -> bool:
        """Whether it brings a file that is neither seen nor heard."""
        return self.kind == "document"

    @property
    def media(self) -> "tuple[IncomingMessage, ...]":
        """This message if it brings a file, then photos of what it replies to or asks again."""
        stored = self.replaced.question if self.replaced else ()
        photos = {  # each once: its caption may be a second message with the same id
            each.message_ids[0]: SentFile(each.photo, "", "", 0)
            for each in stored
            if each.photo and not each.text.endswith(REFUSED_MARK)
        }
        if self.reply and self.reply.photo:
            photos[self.reply.message_id] = SentFile(self.reply.photo, "", "", 0)
        own = [self] if self.kind in MEDIA else []
        others = (replace(self, kind="photo", message_id=i, file=f) for i, f in photos.items())
        return (*own, *others)

    @property
    def is_anonymous_admin(self) -> bool:
        """Whether an admin wrote it in the name of the group, as only admins can."""
        return self.is_group and self.sender.id == self.chat_id

    @property
    def begins_session(self) -> bool:
        """Whether it stands behind `/new`: what was said before leaves the window."""
        return self.command == NEW and self.kind != "command"

    @property
    def is_retried(self) -> bool:
        """Whether `/retry` asks it again: the answer is sent below and the former one deleted."""
        return self.command == RETRY and self.kind != "command"

    @property
    def is_immediate(self) -> bool:
        """Whether intake acts on it at once: `/stop`, or what may be new words for a fact."""
        to = self.reply if self.kind == "text" else None
        is_new_words = to is not None and to.is_ours and to.text.startswith(EDIT_MARK)
        return is_new_words or (self.kind, self.command) == ("command", "stop")


@dataclass(frozen=True, slots=True)
class AlbumPart:
    """A photo of an album in a group, or an edit of its caption, that does not address us itself.

    It must not be stored unless another photo of the album addresses us.
    """

    update_id: int
    message: IncomingMessage


@dataclass(frozen=True, slots=True)
class ButtonPress:
    """A button under one of our messages was pressed."""

    update_id: int
    callback_id: str
    chat_id: int
    topic_id: int
    is_group: bool
    message_id: int
    sender: Sender
    callback_data: str  # what we stored in it
    asked_at: float = 0  # when our message was sent; 0 if Telegram no longer knows


@dataclass(frozen=True, slots=True)
class StoppedDraft:
    """A person pressed Stop under what we are writing in a private chat."""

    update_id: int
    chat_id: int
    topic_id: int
    draft_id: int


@dataclass(frozen=True, slots=True)
class ThumbsDown:
    """A person put a 👎 on a message."""

    topic_id: ClassVar = 0  # Telegram does not say in which topic the message stands

    update_id: int
    chat_id: int
    is_group: bool
    message_id: int
    sender: Sender
    sent_at: int


@dataclass(frozen=True, slots=True)
class ChatMigration:
    """A group became a supergroup: `old_chat_id` is dead, `new_chat_id` continues."""

    update_id: int
    old_chat_id: int
    new_chat_id: int


@dataclass(frozen=True, slots=True)
class TopicNamed:
    """A topic of a private chat got a name: from a person, or from Telegram when it was opened."""

    update_id: int
    chat_id: int
    topic_id: int
    is_by_person: bool


@dataclass(frozen=True, slots=True)
class Ignored:
    """An update that is not for us, or that we may not keep; `reason` is a fixed word."""

    update_id: int
    reason: str


@dataclass(frozen=True, slots=True)
class Stranger:
    """A message that must not be stored, because we do not serve its sender in this chat."""

    update_id: int
    message: IncomingMessage
    place: str  # the title of the group, "" in private


ImmediateUpdate = (
    ButtonPress
    | StoppedDraft
    | ThumbsDown
    | IncomingMessage
    | Stranger
    | ChatMigration
    | TopicNamed
)
Update = ImmediateUpdate | AlbumPart | Ignored


trace_of_update: ContextVar[Callable[[], str]] = ContextVar("trace_of_update", default=str)
"""Returns the trace of the update that this task takes in; "" if nobody traces.

Passed by context, because intake knows no observers. Only a message that is stored asks for it.
"""


def to_bytes(message: IncomingMessage) -> bytes:
    """Pack a message for the mailbox: a JSON array of its fields in their order.

    New fields are only added at the end, with a default: messages may wait during a deploy. What
    has its default at the end is left out, also within a field: an older release reads the rest.
    """
    return stamped(orjson.dumps(message, _fields, orjson.OPT_PASSTHROUGH_DATACLASS))


def from_bytes(packed: bytes) -> IncomingMessage:
    """Unpack what `to_bytes` packed; raise `ValueError` if a newer release did."""
    read = orjson.loads(unstamped(packed))
    values = dict(zip(IncomingMessage.__match_args__, read, strict=False))
    for name, kind in {"sender": Sender, "file": SentFile, "reply": ReplyTarget}.items():
        if values.get(name):
            values[name] = _value(kind, values[name])
    if values.get("replaced"):
        question, *rest = values["replaced"]
        messages = tuple(_value(Message, each) for each in question)
        values["replaced"] = _value(Replaced, [messages, *rest])
    return IncomingMessage(**values)


def _value(kind: Any, stored: list[Any]) -> Any:
    """Return a value; the fields that a newer release has added are left out."""
    known = stored[: len(kind.__match_args__)]
    return kind(*(tuple(each) if isinstance(each, list) else each for each in known))


def readable(packed: bytes) -> IncomingMessage | None:
    """Unpack a message that may be damaged, or of a newer release; None if it cannot be read."""
    try:
        return from_bytes(packed)
    except (KeyError, TypeError, ValueError):
        return None


def _fields(value: Any) -> list[object]:
    values, defaults = [getattr(value, name) for name in value.__match_args__], fields(value)
    while values[-1] == defaults[len(values) - 1].default:
        values.pop()
    return values


_MAX_NAME_CHARS = 64
# Persian letters are joined by one, emoji by the other. All other format characters only hide.
_JOINERS = "\u200c\u200d"
_SYMBOL = re.compile(f"[{SYMBOLS}]")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{1,8}){0,3}")
_TO_SPACE = {"Cc", "Zl", "Zp"}


def read_sender(message: telegram.Message) -> Sender | None:
    """Return the author of a message, None for a bot.

    `sender_chat` is read first: a channel or group that writes in its own name has a made-up bot as
    its user. An anonymous admin writes as the group itself.
    """
    if message.sender_chat:
        chat = message.sender_chat
        name = clean_name(chat.title or "") or chat.username or str(chat.id)
        return Sender(id=chat.id, name=name, is_person=False)
    if message.from_user is None or message.from_user.is_bot:
        return None
    return read_person(message.from_user)


def read_person(user: telegram.User) -> Sender:
    """Return a person. If nothing of the name is visible, username or id is used as the name.

    Their app states the language. It stands in prompts, so only a code counts.
    """
    language = str(user.language_code)
    return Sender(
        id=user.id,
        name=clean_name(user.full_name or "") or user.username or str(user.id),
        first_name=clean_name(user.first_name),
        last_name=clean_name(user.last_name or ""),
        language=language if _LANGUAGE.fullmatch(language) else "en",
    )


def clean_name(name: str, max_chars: int = _MAX_NAME_CHARS) -> str:
    """Return one line of visible characters, "" if nothing shows: names are untrusted text."""
    shown = []
    for character in well_formed(name):
        category = unicodedata.category(character)
        if category in _TO_SPACE:
            shown.append(" ")
        elif category != "Cf" or character in _JOINERS:
            shown.append(character)
    line = " ".join("".join(shown).split())[:max_chars].rstrip()
    # Python may not know the newest emoji yet.
    return line if "".join(letters(line)).strip() or _SYMBOL.search(line) else ""
