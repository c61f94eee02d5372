"""Chats and their messages as people see them: edits are shown, deleted messages are gone.

State only: `people` and `methods` decide what may be done.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.values import (
    FormattedText,
    Keyboard,
    Media,
    MessageEntity,
    Topic,
    User,
)

ChatKind = Literal["private", "group", "supergroup", "channel"]
Status = Literal["creator", "administrator", "member", "left", "kicked"]
_TYPING_LIFETIME_S = 5
_DRAFT_LIFETIME_S = 30


@dataclass(frozen=True, slots=True)
class Member:
    """A user's standing in a chat."""

    user: User
    status: Status

    @property
    def is_admin(self) -> bool:
        """Whether Telegram lists this member among the administrators."""
        return self.status in ("creator", "administrator")


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """A message as it stands now; an edit makes a new value with the same id.

    `Chat.add` sets `id` and `sent_at` (Unix seconds). With `media`, `text` is the caption. `origin`
    is the MessageOrigin of a forwarded message in JSON. `reaction` is the emoji with which the bot
    reacted. Only a post of a channel has no `sender`. The photos of an album have the same `album`.
    """

    chat: "LocalChat" = field(repr=False)
    sender: User | None
    text: str = ""
    entities: tuple[MessageEntity, ...] = ()
    media: Media | None = None
    keyboard: Keyboard = ()
    topic_id: int = 0
    reply_to: "ChatMessage | None" = field(default=None, repr=False)
    id: int = 0
    sent_at: int = 0
    edited_at: int = 0
    origin: Mapping[str, object] = field(default_factory=dict)
    reaction: str = ""
    album: str = ""

    @property
    def thread_id(self) -> int:
        """The `message_thread_id` in JSON."""
        return self.topic_id

    @property
    def further_fields(self) -> Mapping[str, object]:
        """Further fields in JSON."""
        return {}


@dataclass(frozen=True, slots=True)
class DraftMessage:
    """What the bot shows while it is still writing; it vanishes by itself.

    `can_stop` puts a Stop button under it. The draft is gone when a person presses it, unless
    `keep_on_stop` keeps the draft until the bot's next message. `show_draft` sets `until`.
    """

    id: int
    content: FormattedText
    can_stop: bool = False
    keep_on_stop: bool = False
    until: float = 0.0


class LocalChat:
    """One chat; `topics` of a forum by their id."""

    def __init__(
        self,
        account: Account,
        chat_id: int,
        kind: ChatKind,
        title: str = "",
        members: Iterable[Member] = (),
    ) -> None:
        self.id = chat_id
        self.kind = kind
        self.title = title
        self.is_forum = False
        self.members = {member.user.id: member for member in members}
        self.topics: dict[int, Topic] = {}
        self._account = account
        self._messages: dict[int, ChatMessage] = {}
        self._ids = account.message_ids if kind in ("private", "group") else account.new_ids()
        self._typing_until = 0.0
        self._drafts: dict[int, DraftMessage] = {}

    def __repr__(self) -> str:
        return f"LocalChat({self.id}, {self.kind!r}, {self.title!r})"

    @property
    def messages(self) -> list[ChatMessage]:
        """The visible messages, oldest first."""
        return list(self._messages.values())

    @property
    def bot_is_typing(self) -> bool:
        """Whether people see "typing…": for five seconds, or until the bot's next message."""
        return self._account.clock() < self._typing_until

    @property
    def draft(self) -> DraftMessage | None:
        """What the bot is writing right now outside topics, as far as it shows it."""
        return self.draft_in(0)

    def draft_in(self, topic_id: int) -> DraftMessage | None:
        """Return what the bot is writing in a topic: for 30 seconds, or until its next message."""
        draft = self._drafts.get(topic_id)
        return draft if draft and self._account.clock() < draft.until else None

    def message(self, message_id: int) -> ChatMessage | None:
        """Return a message as it stands now, None if it does not exist or was deleted."""
        return self._messages.get(message_id)

    def add_topic(self, name: str, topic_id: int) -> Topic:
        """Add a topic and return it."""
        topic = self.topics[topic_id] = Topic(topic_id, name)
        return topic

    def add(self, message: ChatMessage) -> ChatMessage:
        """Append a message and return it with its id and time."""
        number = message.id or next(self._ids)
        added = replace(message, id=number, sent_at=self._account.now())
        self._messages[added.id] = added
        if added.sender == self._account.bot:
            self._typing_until = 0.0
            self._drafts.pop(added.topic_id, None)
        return added

    def change(self, message: ChatMessage) -> None:
        """Replace the message with the same id."""
        self._messages[message.id] = message

    def remove(self, message: ChatMessage) -> None:
        """Delete a message for everybody."""
        del self._messages[message.id]

    def empty(self) -> None:
        """Delete all messages for everybody; topics stay."""
        self._messages.clear()
        self._drafts.clear()
        self._typing_until = 0.0

    def show_typing(self) -> None:
        """Show that the bot is busy."""
        self._typing_until = self._account.clock() + _TYPING_LIFETIME_S

    def show_draft(self, draft: DraftMessage, topic_id: int = 0) -> None:
        """Show what the bot has written so far."""
        until = self._account.clock() + _DRAFT_LIFETIME_S
        self._drafts[topic_id] = replace(draft, until=until)

    def stop_draft(self, topic_id: int = 0) -> DraftMessage | None:
        """Return the draft whose Stop button is pressed, None if there is no such button."""
        draft = self.draft_in(topic_id)
        if draft is None or not draft.can_stop:
            return None
        del self._drafts[topic_id]
        if draft.keep_on_stop:
            self._drafts[topic_id] = replace(draft, can_stop=False)
        return draft
