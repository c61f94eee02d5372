"""Chats as tests need them: closed to the bot, with drafts, and a way to wait for a reply."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from bot.playground.bot_api import chats
from bot.playground.bot_api.account import Account
from bot.playground.bot_api.shapes import chat_shape, present
from bot.playground.bot_api.values import ApiError, Topic, User
from tests.servers.bot_api.contents import Quote, external_reply
from tests.servers.bot_api.errors import FloodError

_SHOWING_LIMITS = ((5, 20), (30, 40))
"""Drafts and chat actions of one private chat: so many seconds, so many calls."""


@dataclass(frozen=True, slots=True)
class Message(chats.ChatMessage):
    """A message that may be sent as a chat, or be a service message.

    `sender_chat` is the chat that a person speaks as. `service` holds the fields of a service
    message as they stand in JSON, `content` other such fields (`contents` makes them).
    `external_reply` is the message of another chat or topic that this one replies to.
    """

    sender_chat: "chats.LocalChat | None" = field(default=None, repr=False)
    service: Mapping[str, object] = field(default_factory=dict)
    content: Mapping[str, object] = field(default_factory=dict)
    quote: Quote | None = None
    external_reply: chats.ChatMessage | None = field(default=None, repr=False)

    @property
    def thread_id(self) -> int:
        """The `message_thread_id` in JSON: in supergroups every chain of replies has one."""
        if self.topic_id or self.chat.kind != "supergroup" or self.reply_to is None:
            return self.topic_id
        return 0 if self.chat.is_forum else self.reply_to.thread_id or self.reply_to.id

    @property
    def further_fields(self) -> Mapping[str, object]:
        """Further fields in JSON."""
        return {**self.content, **self.service} | present(
            sender_chat=self.sender_chat and chat_shape(self.sender_chat),
            quote=self.quote and self.quote.shape(),
            external_reply=self.external_reply and external_reply(self.external_reply),
        )


class Chat(chats.LocalChat):
    """One chat; `closed` makes the refusal that the bot gets when it writes here.

    `available_reactions` are the emoji that a group allows, None for all.
    """

    closed: Callable[[], ApiError] | None = None
    available_reactions: Sequence[str] | None = None
    has_private_topics = False
    _shown_at: tuple[float, ...] = ()

    def __init__(
        self,
        account: Account,
        chat_id: int,
        kind: chats.ChatKind,
        title: str = "",
        members: Iterable[chats.Member] = (),
    ) -> None:
        super().__init__(account, chat_id, kind, title, members)
        self._reactions: dict[tuple[int, int], tuple[str, ...]] = {}

    @property
    def replies(self) -> list[chats.ChatMessage]:
        """The bot's messages without service messages, oldest first."""
        return [
            message
            for message in self.messages
            if message.sender == self._account.bot
            and not (isinstance(message, Message) and message.service)
        ]

    @property
    def has_topics(self) -> bool:
        """Whether this is a forum, or a private chat with topics."""
        return self.is_forum or self.has_private_topics

    def reaction(self, message: chats.ChatMessage, by: User) -> tuple[str, ...]:
        """Return the emoji of somebody's reaction to a message."""
        return self._reactions.get((message.id, by.id), ())

    def react(
        self, message: chats.ChatMessage, by: User, emoji: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Replace somebody's reaction to a message; return the former one."""
        old = self.reaction(message, by)
        self._reactions[message.id, by.id] = emoji
        return old

    def count_showing(self) -> None:
        """Count a draft or a chat action; raise `FloodError` beyond Telegram's limits."""
        if self.kind != "private":
            return
        now = self._account.clock()
        for seconds, most in _SHOWING_LIMITS:
            if len([at for at in self._shown_at if at > now - seconds]) >= most:
                raise FloodError(3)
        self._shown_at = (*self._shown_at[-_SHOWING_LIMITS[-1][1] :], now)

    def topic(
        self,
        name: str,
        topic_id: int = 0,
        *,
        creator: User | None = None,
        is_name_implicit: bool = False,
    ) -> Topic:
        """Return a new topic, with a service message; by default with the next id.

        By default the creator of the group creates it. `Person.open_topic` also tells the bot.
        """
        if not self.has_topics:
            raise ValueError(f"{self} is not a forum")
        founder = next((m.user for m in self.members.values() if m.status == "creator"), None)
        creator = creator or founder
        about = {"name": name, "icon_color": 0x6FB9F0} | present(is_name_implicit=is_name_implicit)
        service = {"forum_topic_created": about}
        created = self.add(Message(self, creator, service=service, id=topic_id))
        self.change(replace(created, topic_id=created.id))
        return self.add_topic(name, created.id)

    def rename_topic(self, topic: Topic, by: User) -> Topic:
        """Give a topic its new name, with a service message."""
        service = {"forum_topic_edited": {"name": topic.name}}
        self.add(Message(self, by, service=service, topic_id=topic.id))
        return self.add_topic(topic.name, topic.id)

    async def wait_for_reply(
        self,
        after: chats.ChatMessage | None = None,
        *,
        topic: Topic | None = None,
        timeout_s: float = 60,
    ) -> chats.ChatMessage:
        """Return the bot's first message after `after`: by default after the last by a person.

        With `topic` only that topic counts. Raise `TimeoutError`, with the chat so far.
        """
        here = [m for m in self.messages if topic is None or m.topic_id == topic.id]
        others = [message.id for message in here if message.sender != self._account.bot]
        start = after.id if after else max(others, default=0)

        def reply() -> chats.ChatMessage | None:
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


def tested(chat: chats.LocalChat) -> Chat:
    """Return a chat of the tests' world with its own type."""
    if not isinstance(chat, Chat):
        raise TypeError(f"{chat} is not a chat of the tests' world")
    return chat
