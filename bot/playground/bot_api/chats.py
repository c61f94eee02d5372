"""Chats and the messages in them, as people see them: edits shown, deleted messages gone.

State only: who may do what to it is decided by `people` and `methods`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from bot.playground.bot_api.account import Account
from bot.playground.bot_api.errors import ApiError
from bot.playground.bot_api.values import Entity, FormattedText, Keyboard, Media, Topic, User

ChatKind = Literal["private", "group", "supergroup", "channel"]
Status = Literal["creator", "administrator", "member", "left", "kicked"]
_DRAFT_LIFETIME_S = 30
_TYPING_LIFETIME_S = 5


@dataclass(frozen=True, slots=True)
class Member:
    """Somebody's standing in a chat."""

    user: User
    status: Status

    @property
    def is_admin(self) -> bool:
        """Whether Telegram lists this member among the administrators."""
        return self.status in ("creator", "administrator")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it stands now; an edit makes a new value with the same id.

    `Chat.add` gives `id` and `sent_at` (Unix seconds). `text` is the caption where there is
    `media`. `sender` is absent in a channel; `sender_chat` is whom a person speaks as. `service`
    holds the fields of a service message as they stand in JSON.
    """

    chat: "Chat" = field(repr=False)
    sender: User | None
    text: str = ""
    entities: tuple[Entity, ...] = ()
    media: Media | None = None
    keyboard: Keyboard = ()
    topic_id: int = 0
    reply_to: "Message | None" = field(default=None, repr=False)
    sender_chat: "Chat | None" = field(default=None, repr=False)
    service: Mapping[str, object] = field(default_factory=dict)
    id: int = 0
    sent_at: int = 0
    edited_at: int = 0

    @property
    def thread_id(self) -> int:
        """The `message_thread_id` on the wire: in supergroups every chain of replies has one."""
        if self.topic_id or self.chat.kind != "supergroup" or self.reply_to is None:
            return self.topic_id
        return 0 if self.chat.is_forum else self.reply_to.thread_id or self.reply_to.id


@dataclass(frozen=True, slots=True)
class Draft:
    """What the bot shows while it is still writing; it vanishes by itself."""

    id: int
    content: FormattedText
    until: float


class Chat:
    """One chat; `closed` makes the refusal that the bot gets when it writes here."""

    def __init__(
        self,
        account: Account,
        chat_id: int,
        kind: ChatKind,
        title: str = "",
        members: Iterable[Member] = (),
        *,
        is_forum: bool = False,
    ) -> None:
        self.id = chat_id
        self.kind = kind
        self.title = title
        self.is_forum = is_forum
        self.members = {member.user.id: member for member in members}
        self.topics: dict[int, Topic] = {}
        self.closed: Callable[[], ApiError] | None = None
        self._account = account
        self._messages: dict[int, Message] = {}
        self._ids = account.message_ids if kind in ("private", "group") else account.new_ids()
        self._draft: Draft | None = None
        self._typing_until = 0.0

    def __repr__(self) -> str:
        return f"Chat({self.id}, {self.kind!r}, {self.title!r})"

    @property
    def messages(self) -> list[Message]:
        """Everything to be seen in the chat, oldest first."""
        return list(self._messages.values())

    @property
    def replies(self) -> list[Message]:
        """What the bot said, oldest first."""
        return [message for message in self.messages if message.sender == self._account.bot]

    @property
    def draft(self) -> Draft | None:
        """What the bot is writing right now, as far as it shows it."""
        if self._draft is None or self._draft.until <= self._account.clock():
            return None
        return self._draft

    @property
    def bot_is_typing(self) -> bool:
        """Whether people see "typing…": for five seconds, or until the next message."""
        return self._account.clock() < self._typing_until

    def message(self, message_id: int) -> Message | None:
        """Return a message as it stands now, or nothing when there is none (any more)."""
        return self._messages.get(message_id)

    def topic(self, name: str, topic_id: int = 0) -> Topic:
        """Return a new topic of this forum; without an id of its own it takes the next."""
        if not self.is_forum:
            raise ValueError(f"{self} is no forum")
        creator = next((m.user for m in self.members.values() if m.status == "creator"), None)
        service = {"forum_topic_created": {"name": name, "icon_color": 0x6FB9F0}}
        created = self.add(Message(self, creator, service=service, id=topic_id))
        self.change(replace(created, topic_id=created.id))
        topic = self.topics[created.id] = Topic(created.id, name)
        return topic

    def add(self, message: Message) -> Message:
        """Append a message and return it with its id and time; the bot's ends its draft."""
        number = message.id or next(self._ids)
        added = replace(message, id=number, sent_at=self._account.now())
        self._messages[added.id] = added
        if added.sender == self._account.bot:
            self._draft, self._typing_until = None, 0.0
        return added

    def change(self, message: Message) -> None:
        """Put `message` in the place of the one with its id."""
        self._messages[message.id] = message

    def remove(self, message: Message) -> None:
        """Take a message away for everybody."""
        del self._messages[message.id]

    def empty(self) -> None:
        """Take every message away for everybody, as if nothing had been said; topics stay."""
        self._messages.clear()
        self._draft, self._typing_until = None, 0.0

    def show_draft(self, draft_id: int, content: FormattedText) -> None:
        """Show what the bot has written so far."""
        self._draft = Draft(draft_id, content, self._account.clock() + _DRAFT_LIFETIME_S)

    def show_typing(self) -> None:
        """Show that the bot is busy."""
        self._typing_until = self._account.clock() + _TYPING_LIFETIME_S

    async def wait_for_reply(
        self, after: Message | None = None, *, topic: Topic | None = None, timeout_s: float = 10
    ) -> Message:
        """Return the bot's first message after `after`: by default the last by somebody else.

        With `topic` only that topic is looked at. Raises `TimeoutError`, with the chat so far.
        """
        here = [m for m in self.messages if topic is None or m.topic_id == topic.id]
        others = [message.id for message in here if message.sender != self._account.bot]
        start = after.id if after else max(others, default=0)

        def reply() -> Message | None:
            replies = (m for m in self.replies if topic is None or m.topic_id == topic.id)
            return next((message for message in replies if message.id > start), None)

        try:
            return await self._account.changes.until(reply, timeout_s)
        except TimeoutError:
            raise TimeoutError(f"no reply in {timeout_s} s\n{self.transcript()}") from None

    def transcript(self) -> str:
        """Return the chat as lines of name and text."""
        return "\n".join(
            f"{message.sender.first_name if message.sender else self.title}: {message.text}"
            for message in self.messages
        )
