"""The messages of a conversation as values. `scopes.history` reads and writes them."""

from dataclasses import dataclass, field
from typing import Literal

Role = Literal["user", "assistant"]
ImageDetail = Literal["auto", "low", "high"]
CLAIM = "k"
"""Begins a code in `Message.used`: the answer says that it has saved something, and no tool did.

The language of the person follows it.
"""


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in a conversation, verbatim.

    `seq` counts from 1 within the conversation and is never used again. `exchange` numbers the turn
    that the message belongs to, so that a question and its answer share it. `sent_at` is in Unix
    seconds. `sender_id` is 0 for the assistant. `message_ids` are Telegram's, of every message that
    the text was joined from (or sent as). `tokens` counts `text` alone. `is_first_party` is false
    if any of the text is not the sender's own: forwarded, quoted or read from a document. For the
    assistant it is false if the prompt had untrusted text. If `is_refused` is true, the model's
    server refused this text: it is stored and never sent to a model again. `forwarded_from` names
    who wrote a forwarded message, "" if it is none, and `forwarded_at` is when (Unix seconds).
    `unseen` names the photos, videos or sounds that came with the text. If `message_ids` of a
    person are several, `lengths` has the characters of each, -1 for one without text; the texts are
    joined by line breaks. `replied_to` is Telegram's id of the message that it replies to, or 0.
    `photo` is Telegram's id of the picture that the text describes, "" if it describes none.
    `album` is Telegram's id of the album that it was sent in, "" for none.
    `used` names the memories whose text stood in the prompt of an answer: codes as of
    `CallContext.used`, and `CLAIM`, separated by spaces. It is in no prompt. `edited_at` is when
    each of `message_ids` was edited last (Unix seconds, 0 for never); it is empty if none was.
    """

    seq: int
    exchange: int
    role: Role
    text: str
    sent_at: float
    sender_id: int = 0
    sender_name: str = ""
    message_ids: tuple[int, ...] = ()
    tokens: int = 0
    is_first_party: bool = True
    is_refused: bool = False
    forwarded_from: str = ""
    forwarded_at: float = 0
    unseen: str = ""
    lengths: tuple[int, ...] = ()
    replied_to: int = 0
    used: str = ""
    photo: str = ""
    album: str = ""
    edited_at: tuple[int, ...] = ()

    @property
    def is_task(self) -> bool:
        """Whether it is a task that became due, which no message in the chat shows."""
        return bool(self.message_ids) and self.message_ids[0] < 0

    @property
    def ids_in_chat(self) -> tuple[int, ...]:
        """The messages in the chat that show it."""
        return () if self.is_task else self.message_ids

    @property
    def claim(self) -> str:
        """The language of a claim to have saved something; "" if it makes none."""
        codes = (code for code in self.used.split() if code.startswith(CLAIM))
        return next(codes, "").removeprefix(CLAIM)

    @property
    def rests_on_memory(self) -> bool:
        """Whether a memory stood in the prompt of this answer."""
        return any(not code.startswith(CLAIM) for code in self.used.split())


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture for the model, in the turn of its message only. Nothing of it is stored.

    `width` and `height` are in pixels. `detail` is how closely the model looks at it.
    """

    message_id: int
    content: bytes = field(repr=False)
    mime_type: str
    width: int
    height: int
    detail: ImageDetail = "low"


@dataclass(frozen=True, slots=True)
class RepliedTo:
    """A message that the person replies to; its `seq` is 0 if our log does not have it.

    `question` is what one of our answers answered. `quote` is the part that the person marked.
    """

    message: Message
    question: Message | None = None
    quote: str = ""


NOTHING_SAID = Message(seq=0, exchange=0, role="user", text="", sent_at=0)
"""Stands for the person's message in a conversation without messages."""
