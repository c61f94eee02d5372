"""The messages of a conversation as values. `scopes.history` reads and writes them."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

Role = Literal["user", "assistant"]
ImageDetail = Literal["auto", "low", "high"]
CLAIM = "k"
"""In `Message.used`, before the person's language: the answer claims to have saved something, and
no tool did."""

_MAX_DIFFERENCE_S = 86_400
"""Between the times of a message and its edit or a reply: Telegram delivers up to a day late."""


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in a conversation, verbatim. Times are in Unix seconds.

    `message_ids`, `replied_to`, `photo` and `album` are ids of Telegram. The texts of several
    messages are joined by line breaks.
    """

    seq: int  # counts from 1 within the conversation and is never used again
    exchange: int  # the number of its turn, which a question and its answer share
    role: Role
    text: str
    sent_at: float
    sender_id: int = 0  # 0 for the assistant
    sender_name: str = ""
    message_ids: tuple[int, ...] = ()  # of all messages that the text was joined from, or sent as
    tokens: int = 0  # of `text` alone
    # False if some text is not the sender's own: forwarded, quoted or read from a document. Of an
    # answer: if the prompt had untrusted text.
    is_first_party: bool = True
    is_refused: bool = False  # by the model's server: stored, and never sent to a model again
    forwarded_from: str = ""  # who wrote a forwarded message, ...
    forwarded_at: float = 0  # ... and when
    unseen: str = ""  # names the photos, videos or sounds that came with the text
    lengths: tuple[int, ...] = ()  # characters of each of several messages, -1 without a text
    replied_to: int = 0
    used: str = ""  # memories in the prompt of an answer: `CallContext.used` and `CLAIM`, by blanks
    photo: str = ""  # the picture that the text describes
    album: str = ""  # the album that it was sent in
    # Times, then updates, as many as `message_ids`: when each was edited last, 0 for never, and
    # by which update. An older release stored only the times.
    edited_at: tuple[int, ...] = ()

    @property
    def embedded_text(self) -> str:
        """The text that is indexed and embedded: its speaker and its words.

        A date in front would make all messages alike, and no question begins with one.
        """
        forwarded = f", forwarded from {self.forwarded_from}" if self.forwarded_from else ""
        return f"{self.sender_name or self.role}{forwarded}: {self.text}"

    @property
    def is_task(self) -> bool:
        """Whether it is a task that became due, which no message in the chat shows."""
        return bool(self.message_ids) and self.message_ids[0] < 0

    def shows(self, message_id: int, sent_at: float = 0) -> bool:
        """Whether it holds the message of this id that was sent about then (0: unknown).

        A group that becomes a supergroup uses message ids again.
        """
        is_of_then = abs(self.sent_at - (sent_at or self.sent_at)) < _MAX_DIFFERENCE_S
        return is_of_then and message_id in self.message_ids

    @property
    def ids_in_chat(self) -> tuple[int, ...]:
        """The messages in the chat that show it."""
        return () if self.is_task else self.message_ids

    @property
    def rests_on_memory(self) -> bool:
        """Whether a memory stood in the prompt of this answer."""
        return any(not code.startswith(CLAIM) for code in self.used.split())


def texts_of(message: Message) -> list[str | None]:
    """Return the texts that a stored message was joined from, one for each of its ids.

    None stands for a message without text. [] if it is only one text, or the lengths are unknown.
    """
    texts: list[str | None] = []
    if len(message.lengths) == len(message.message_ids):
        start = 0
        for length in message.lengths:
            texts.append(message.text[start : start + length] if length >= 0 else None)
            start += length + 1
    return texts


def joined(texts: Sequence[str | None]) -> tuple[str, tuple[int, ...]]:
    """Return the texts of several messages as one, and the length of each; -1 for none."""
    lengths = tuple(-1 if text is None else len(text) for text in texts)
    return "\n".join(text for text in texts if text is not None), lengths


_LOW_DETAIL_TOKENS = 512


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for the model, in the turn of its message only. Nothing of it is stored."""

    message_id: int  # whose text will say what it shows; 0 if that is stored already
    content: bytes = field(repr=False)
    mime_type: str
    width: int  # in pixels
    height: int
    detail: ImageDetail = "low"  # how closely the model looks at it

    @property
    def tokens(self) -> int:
        """About how many tokens it takes, more than OpenAI's documentation says.

        Its models count squares of 32 pixels, at most 1,536 of them, times up to 1.62. With low
        detail they look at 512 by 512 pixels: 256 squares, which makes 415. Servers that do not
        know `detail` count more.
        """
        if self.detail == "low":
            return _LOW_DETAIL_TOKENS
        squares = -(-self.width // 32) * -(-self.height // 32)
        return max(_LOW_DETAIL_TOKENS, int(1.62 * min(squares, 1_536)) + 1)

    @property
    def data_url(self) -> str:
        """The picture as a `data:` URL."""
        return f"data:{self.mime_type};base64,{b64encode(self.content).decode()}"


@dataclass(frozen=True, slots=True)
class RepliedTo:
    """A message that the person replies to; its `seq` is 0 if our log does not have it."""

    message: Message
    question: Message | None = None  # what one of our answers answered
    quote: str = ""  # the part that the person marked


NOTHING_SAID = Message(seq=0, exchange=0, role="user", text="", sent_at=0)
"""Stands for the person's message in a conversation without messages."""
