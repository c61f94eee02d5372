"""The outbox of a turn: its reply as stored in Redis before the first part is sent.

From then on the model is never asked again for this turn, whichever worker finishes it.
"""

from dataclasses import dataclass, replace

import orjson

from bot.commands.sentences import Sentences
from bot.reply.parts import Parts, from_json, to_json
from bot.telegram.chat import Destination
from bot.turn.request import Request
from memory.queue.open_turn import stamped, unstamped

_END = b"\n"  # stands between the JSON, which has no line breaks, and the bytes of files


@dataclass(frozen=True, slots=True)
class Outbox:
    """A reply, and what closing its turn writes."""

    to: Destination
    parts: Parts
    said: str = ""  # the reply as the history keeps it, word for word; "" for a notice
    ends_session: bool = False
    digest: str = ""  # what the tools did
    writes: str = ""  # what they want written
    is_unread: bool = False  # the person's message does not enter the history
    is_refused: bool = False  # it enters as one that the model's server did not take
    is_untrusted: bool = False  # the reply was written with untrusted text at hand
    rich_parts: int = 0  # so many first parts may be replaced by one rich message with `said`
    replaces: tuple[int, ...] = ()  # messages of the former reply, which the parts are edited into
    work: str = ""  # what tools add and cancel (`WorkChanges`)
    used: str = ""  # the memories whose text stood in the prompt (`Message.used`)
    heard: tuple[tuple[int, str], ...] = ()  # words of voice messages, and what photos show
    is_below: bool = False  # the parts are sent below what they replace, which is then deleted

    def to_bytes(self) -> bytes:
        """Return the stored form."""
        to = (self.to.chat_id, self.to.topic_id, self.to.reply_to)
        rest = (self.said, self.ends_session, self.digest, self.writes, self.is_unread)
        # Left out if they say nothing, so that an older process can read all other outboxes.
        last: list[object] = [self.is_refused, self.is_untrusted, self.rich_parts]
        last += [self.replaces, self.work, self.used, self.heard, self.is_below]
        while last and not last[-1]:
            last.pop()
        described = stamped(orjson.dumps([*to, to_json(self.parts), *rest, *last]))
        files = (part.file for part in self.parts if part.file and part.file.kind != "text")
        contents = b"".join(file.content for file in files)
        return described + _END + contents if contents else described

    @classmethod
    def from_bytes(cls, stored: bytes) -> "Outbox":
        """Read the stored form; raise `ValueError` if a newer release wrote it."""
        described, _, contents = unstamped(stored).partition(_END)
        chat_id, topic_id, reply_to, parts, *rest = orjson.loads(described)
        outbox = cls(Destination(chat_id, topic_id, reply_to), from_json(parts, contents), *rest)
        heard = tuple((id_, words) for id_, words in outbox.heard)
        return replace(outbox, replaces=tuple(outbox.replaces), heard=heard)

    @property
    def questions(self) -> dict[str, str]:
        """What its buttons answer: the stored form of each question by its nonce."""
        asked = (part.question for part in self.parts if part.question)
        return {each.nonce: each.stored for each in asked}


def notice(request: Request, sentences: Sentences, key: str, **values: object) -> Outbox:
    """Return an outbox that says a sentence instead of an answer."""
    return Outbox(request.to, sentences.say(request.language, key, **values))
