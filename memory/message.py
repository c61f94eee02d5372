"""Values of a conversation's history: who said what, when.

Plain data for every room; reading and writing them is `history`'s business.
"""

from dataclasses import dataclass
from typing import Literal

Role = Literal["user", "assistant"]


@dataclass(frozen=True, slots=True)
class Message:
    """One thing said in a conversation, verbatim.

    `seq` counts from 1 within the conversation and is never used again. `exchange` numbers the turn
    that the message belongs to, so that a question and its answer share it. `sent_at` is in Unix
    seconds. `sender_id` is 0 for the assistant. `message_ids` are Telegram's, of every message that
    the text was joined from (or sent as). `tokens` counts `text` alone. `is_own` is false where any
    of it is not the sender's own: forwarded, quoted or read from a document; of the assistant's,
    where untrusted text was at hand when it was written. `is_refused` says that
    the model's server did not take these words: they are stored, and never put before a model.
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


NOTHING_SAID = Message(seq=0, exchange=0, role="user", text="", sent_at=0)
"""What stands for the person's words where nobody has said anything yet."""
