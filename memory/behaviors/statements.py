"""What may become a fact, and the entries that come of what a model says was stated.

Pure rules. A fact names a message in which a person says it in their own words: what is forwarded,
quoted, read or answered by the assistant teaches no facts. That, and that facts are told to the
model as data, is the defence against planted ones; the check of the wording only catches the plain
cases, and in English.
"""

import re
from collections.abc import Iterable, Mapping

from pydantic import BaseModel, Field

from memory.behaviors.call_context import is_first_party
from memory.behaviors.learning_behavior import Batch
from memory.message import Message
from memory.scopes.provenance import senders_of
from memory.scopes.records import THE_ONE_BEFORE, Again, Ended, Entry, Fact, Source
from memory.text.untrusted_text import one_line

MAX_CHARS = 200
_MAX_A_BATCH = 8

_WORD = re.compile(r"\w{4,}")
_STEM = 5
"""Letters by which forms of a word are alike; shorter words say little."""

# Orders to the assistant, and claims of being allowed more than others. Wishes ("prefers short
# answers") and professions ("is a database administrator") pass.
_PLANTED = re.compile(
    r"\b(?:ignor|disregard|overrid|bypass)\w*\b.*\b(?:instruction|rule|prompt|polic|safety)"
    r"|\bsystem (?:prompt|message)\b|\bjailbr[eo]ak|\bdeveloper mode\b"
    r"|\b(?:assistant|bot|model|ai)\b.{0,20}\b(?:must|shall|should|has to|is to|is required to)\b"
    r"|\b(?:admin\w*|root|superuser|elevated|special|full)\s+(?:right|privilege|permission|access)"
    r"|\b(?:is|are) (?:an? |the )?(?:admin|administrator|superuser|root)(?: of th\w+ \w+)?\W*$"
    r"|\b(?:is|are) (?:allowed|authori[sz]ed|permitted|entitled) to\b",
    re.IGNORECASE,
)


class Statement(BaseModel):
    """One statement that was made."""

    text: str = Field(
        "", description="Short, in the present tense, understandable by itself, max. 200 characters"
    )
    message: int | None = Field(
        None, description="Number n of the message in which a person says it themselves"
    )
    replaces: int | None = Field(
        None, description="Id of the known fact that it contradicts or brings up to date, or null"
    )
    repeats: int | None = Field(
        None, description="Id of the known fact that it says once more, or null"
    )


class Statements(BaseModel):
    """What people said of themselves that is worth knowing for long."""

    facts: list[Statement] = Field([], description="Empty when nothing of that kind was said")


def unfit(text: str) -> str:
    """Say why a text, already on one line, is no fact; "" when it may be one."""
    if not text or len(text) > MAX_CHARS:
        return f"a fact has 1 to {MAX_CHARS} characters"
    if _PLANTED.search(text):
        return "orders to the assistant and claims about permissions are not kept as facts"
    return ""


def same_fact(text: str, facts: Iterable[Fact]) -> Fact | None:
    """Return the fact that says the same but for case, spacing and end marks."""
    sought = _normal(text)
    return next((fact for fact in facts if _normal(fact.text) == sought), None)


def entries_of(statements: Iterable[Statement], batch: Batch) -> list[Entry]:
    """Return what to write: new facts, further sources of known ones, ends of superseded ones."""
    own = {m.seq: m for m in batch.messages if m.role == "user" and m.is_first_party}
    untrusted = _untrusted_text(batch, own)
    current = {fact.id: fact for fact in batch.facts.facts if fact.is_current}
    entries: list[Entry] = []
    touched: set[str] = set()
    for statement in statements:
        text, message = one_line(statement.text), own.get(statement.message or 0)
        if message is None or unfit(text) or _normal(text) in touched:
            continue
        if (_words(text) - _words(message.text)) & untrusted:
            continue
        touched.add(_normal(text))
        source = _source(batch, message)
        repeated = same_fact(text, current.values()) or current.get(statement.repeats or 0)
        replaced = _replaceable(batch, message, current.get(statement.replaces or 0))
        if repeated is not None:
            entries += _again(repeated, source)
        elif replaced is None:
            entries.append(Fact(0, text, (source,), said_at=message.sent_at))
        elif replaced.said_at <= message.sent_at:  # what is older brings nothing up to date
            del current[replaced.id]
            entries.append(Fact(0, text, (source,), said_at=message.sent_at))
            entries.append(Ended(replaced.id, message.sent_at, THE_ONE_BEFORE))
        if len(touched) == _MAX_A_BATCH:
            break
    return entries


def _replaceable(batch: Batch, message: Message, fact: Fact | None) -> Fact | None:
    """Return a fact if a message may end it: in a group only one that rests on the same person.

    What others contradict stays beside their own word; the model is told both, with their dates.
    """
    if fact is None or batch.conversation.is_private:
        return fact
    return fact if is_first_party(message.sender_id, senders_of(batch.facts, fact)) else None


def _untrusted_text(batch: Batch, own: Mapping[int, Message]) -> set[str]:
    """Return the beginnings of words that only others have said in this lesson.

    A fact that has one of them from there, and not from the message it names, is not that person's.
    """
    others = [message.text for message in batch.messages if message.seq not in own]
    said = set().union(*map(_words, (*others, *batch.digests.values())))
    return said.difference(*(_words(message.text) for message in own.values()))


def _words(text: str) -> set[str]:
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _again(fact: Fact, source: Source) -> list[Entry]:
    """Return a further source, unless the same message is one already."""
    known = {(each.tag, each.seq) for each in fact.sources}
    return [] if (source.tag, source.seq) in known else [Again(fact.id, source)]


def _source(batch: Batch, message: Message) -> Source:
    return Source(batch.conversation.tag, message.seq, batch.here.epoch, message.sender_id)


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!… ")
