"""The outbox of a turn: its reply as stored in Redis before the first part is sent.

From here on the model is never asked again for this turn, whoever finishes it.
"""

from dataclasses import dataclass

import orjson

from bot.reply.parts import Part, from_json, to_json


@dataclass(frozen=True, slots=True)
class Outbox:
    """A reply and what closing its turn writes.

    `said` is the reply as the history keeps it, verbatim; empty when it is a notice. `reply_to` is
    0 outside groups. `digest` tells what the tools did and `writes` what they want written. An
    `unread` one is a notice instead of an answer: what was said does not enter the history. With a
    `refused` one it enters as words that the model's server did not take. An `untrusted` one was
    written with untrusted text at hand.
    """

    chat_id: int
    topic_id: int
    reply_to: int
    parts: tuple[Part, ...]
    said: str = ""
    ends_session: bool = False
    digest: str = ""
    writes: str = ""
    unread: bool = False
    refused: bool = False
    untrusted: bool = False

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        place = (self.chat_id, self.topic_id, self.reply_to)
        rest = (self.said, self.ends_session, self.digest, self.writes, self.unread)
        # Only where it says something, so that an older process can still read all other outboxes.
        last = (self.refused, self.untrusted) if self.refused or self.untrusted else ()
        return orjson.dumps([*place, to_json(self.parts), *rest, *last])

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Outbox":
        """Read the stored form."""
        chat_id, topic_id, reply_to, parts, *rest = orjson.loads(stored)
        return cls(chat_id, topic_id, reply_to, from_json(parts), *rest)
