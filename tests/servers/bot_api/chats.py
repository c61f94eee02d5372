"""Chats and their messages as people see them: edits are shown, deleted messages are gone.

State only: `people` and `methods` decide what may be done.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from tests.servers.bot_api.account import Account
from tests.servers.bot_api.errors import ApiError, flood
from tests.servers.bot_api.values import (
    Entity,
    FormattedText,
    Keyboard,
    Media,
    Quote,
    StoredFile,
    Topic,
    User,
    present,
)

ChatKind = Literal["private", "group", "supergroup", "channel"]
Status = Literal["creator", "administrator", "member", "left", "kicked"]
_DRAFT_LIFETIME_S = 30
_SHOWING_LIMITS = ((5, 20), (30, 40))
"""Drafts and chat actions of one private chat: so many seconds, so many calls."""


@dataclass(frozen=True, slots=True)
class Member:
    """A user's standing in a chat."""

    user: User
    status: Status

    @property
    def is_admin(self) -> bool:
        return self.status in ("creator", "administrator")


@dataclass(frozen=True, slots=True)
class Message:
    """A message as it stands now; an edit makes a new value with the same id.

    `Chat.add` sets `id` and `sent_at` (Unix seconds). With `media`, `text` is the caption. The
    photos of an album have the same `album`. `sender_chat` is the chat that a person speaks as.
    `service` holds the fields of a service message as they stand in JSON, `content` other such
    fields (`contents` makes them). `external_reply` is the message of another chat or topic that
    this one replies to.
    """

    chat: "Chat" = field(repr=False)
    sender: User
    text: str = ""
    entities: tuple[Entity, ...] = ()
    media: Media | None = None
    keyboard: Keyboard = ()
    topic_id: int = 0
    reply_to: "Message | None" = field(default=None, repr=False)
    id: int = 0
    sent_at: int = 0
    edited_at: int = 0
    album: str = ""
    sender_chat: "Chat | None" = field(default=None, repr=False)
    service: Mapping[str, object] = field(default_factory=dict)
    content: Mapping[str, object] = field(default_factory=dict)
    quote: Quote | None = None
    external_reply: "Message | None" = field(default=None, repr=False)

    @property
    def now(self) -> "Message":
        """This message as people see it now; one that was deleted as it is."""
        return self.chat.message(self.id) or self

    @property
    def file(self) -> StoredFile:
        """The file that was sent with it; there must be one."""
        assert self.media, self
        return self.media.file

    @property
    def labels(self) -> list[str]:
        """The texts of its buttons."""
        return [button.text for row in self.keyboard for button in row]

    @property
    def thread_id(self) -> int:
        """The `message_thread_id` in JSON: in supergroups every chain of replies has one."""
        if self.topic_id or self.chat.kind != "supergroup" or self.reply_to is None:
            return self.topic_id
        return 0 if self.chat.is_forum else self.reply_to.thread_id or self.reply_to.id


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


class Chat:
    """One chat; `closed` makes the refusal that the bot gets when it writes here.

    `topics` are those of a forum by their id. `available_reactions` are the emoji that a group
    allows, None for all.
    """

    closed: Callable[[], ApiError] | None = None
    available_reactions: Sequence[str] | None = None
    is_forum = False
    has_private_topics = False

    def __init__(
        self, account: Account, chat_id: int, kind: ChatKind, title: str, members: Iterable[Member]
    ) -> None:
        self.id = chat_id
        self.kind = kind
        self.title = title
        self.members = {member.user.id: member for member in members}
        self.topics: dict[int, Topic] = {}
        self._account = account
        self._messages: dict[int, Message] = {}
        self._ids = account.message_ids if kind in ("private", "group") else account.new_ids()
        self._drafts: dict[int, DraftMessage] = {}
        self._reactions: dict[tuple[int, int], tuple[str, ...]] = {}
        self._shown_at: tuple[float, ...] = ()

    def __repr__(self) -> str:
        return f"Chat({self.id}, {self.kind!r}, {self.title!r})"

    @property
    def messages(self) -> list[Message]:
        return list(self._messages.values())

    @property
    def replies(self) -> list[Message]:
        """The bot's messages without service messages, oldest first."""
        bot = self._account.bot
        return [each for each in self.messages if each.sender == bot and not each.service]

    @property
    def texts(self) -> list[str]:
        """The texts of `replies`."""
        return [each.text for each in self.replies]

    @property
    def has_topics(self) -> bool:
        """Whether this is a forum, or a private chat with topics."""
        return self.is_forum or self.has_private_topics

    @property
    def draft(self) -> DraftMessage | None:
        """What the bot is writing right now outside topics, as far as it shows it."""
        return self.draft_in(0)

    def draft_in(self, topic_id: int) -> DraftMessage | None:
        """Return what the bot is writing in a topic: for 30 seconds, or until its next message."""
        draft = self._drafts.get(topic_id)
        return draft if draft and self._account.clock() < draft.until else None

    def message(self, message_id: int) -> Message | None:
        """Return a message as it stands now, None if it does not exist or was deleted."""
        return self._messages.get(message_id)

    def add(self, message: Message) -> Message:
        """Append a message and return it with its id and time."""
        number = message.id or next(self._ids)
        added = replace(message, id=number, sent_at=self._account.now())
        self._messages[added.id] = added
        if added.sender == self._account.bot:
            self._drafts.pop(added.topic_id, None)
        return added

    def change(self, message: Message) -> None:
        self._messages[message.id] = message

    def remove(self, message: Message) -> None:
        del self._messages[message.id]

    def reaction(self, message: Message, by: User) -> tuple[str, ...]:
        return self._reactions.get((message.id, by.id), ())

    def react(self, message: Message, by: User, emoji: tuple[str, ...]) -> tuple[str, ...]:
        """Replace somebody's reaction to a message; return the former one."""
        old = self.reaction(message, by)
        self._reactions[message.id, by.id] = emoji
        return old

    def count_showing(self) -> None:
        """Count a draft or a chat action; raise `ApiError` beyond Telegram's limits."""
        if self.kind != "private":
            return
        now = self._account.clock()
        for seconds, most in _SHOWING_LIMITS:
            if len([at for at in self._shown_at if at > now - seconds]) >= most:
                raise flood(3)
        self._shown_at = (*self._shown_at[-_SHOWING_LIMITS[-1][1] :], now)

    def show_draft(self, draft: DraftMessage, topic_id: int) -> None:
        until = self._account.clock() + _DRAFT_LIFETIME_S
        self._drafts[topic_id] = replace(draft, until=until)

    def stop_draft(self) -> DraftMessage | None:
        """Return the draft whose Stop button is pressed, None if there is no such button."""
        draft = self.draft
        if draft is None or not draft.can_stop:
            return None
        del self._drafts[0]
        if draft.keep_on_stop:
            self._drafts[0] = replace(draft, can_stop=False)
        return draft

    def add_topic(self, name: str, topic_id: int) -> Topic:
        topic = self.topics[topic_id] = Topic(topic_id, name)
        return topic

    def topic(
        self, name: str, *, creator: User | None = None, is_name_implicit: bool = False
    ) -> Topic:
        """Return a new topic, with a service message.

        By default the creator of the group creates it. `Person.open_topic` also tells the bot.
        """
        if not self.has_topics:
            raise ValueError(f"{self} is not a forum")
        founder = min(self.members.values(), key=lambda each: each.status != "creator").user
        about = {"name": name, "icon_color": 0x6FB9F0} | present(is_name_implicit=is_name_implicit)
        service = {"forum_topic_created": about}
        created = self.add(Message(self, creator or founder, service=service))
        self.change(replace(created, topic_id=created.id))
        return self.add_topic(name, created.id)

    def rename_topic(self, topic: Topic, by: User) -> Topic:
        """Give a topic its new name, with a service message."""
        service = {"forum_topic_edited": {"name": topic.name}}
        self.add(Message(self, by, service=service, topic_id=topic.id))
        return self.add_topic(topic.name, topic.id)

    async def wait_for_reply(
        self, after: Message | None = None, *, topic: Topic | None = None, timeout_s: float = 60
    ) -> Message:
        """Return the bot's first message after `after`: by default after the last by a person.

        With `topic` only that topic counts. Raise `TimeoutError`, with the chat so far.
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
        return "\n".join(f"{each.sender.first_name}: {each.text}" for each in self.messages)
