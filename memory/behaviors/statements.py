"""Rules for facts: what may become one, the entries for a model's statements, who is asked first.

A fact must name a message in which a person states it in their own words. Forwarded, quoted or read
text and the assistant's answers give no facts. Against planted facts there are two defences: this
rule, and that the model sees facts as data. The check of the wording finds only plain cases, in
English.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Literal, Self, get_args

from pydantic import BaseModel, BeforeValidator, Field

from memory.behaviors.context import is_first_party
from memory.behaviors.learning_behavior import Batch
from memory.message import Message
from memory.scopes.changes import Revision, senders_of
from memory.scopes.entries import THE_ONE_BEFORE, Again, Ended, Fact, Pinned, ScopeEntry
from memory.scopes.fact_lists import known_facts
from memory.scopes.fields import UNASKED, WaitingWrite
from memory.scopes.fields import Field as StoredField
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Source, never_erased
from memory.scopes.writes import Remember
from memory.search.words import words_of
from memory.store.keys import Scope
from memory.text.message_lines import days_of
from memory.text.untrusted_text import one_line, seen_by_people

MAX_CHARS = 200
_MAX_KIND_CHARS = 24
_MAX_PER_BATCH = 8

_WORD = re.compile(r"\w{4,}")
_STEM = 5  # forms of one word share their first five letters; shorter words say little

# Orders to the assistant and claims to special rights. Wishes ("prefers short answers") and
# professions ("is a database administrator") pass.
_PLANTED = re.compile(
    r"\b(?:ignor|disregard|overrid|bypass)\w*\b.*\b(?:instruction|rule|prompt|polic|safety)"
    r"|\bsystem (?:prompt|message)\b|\bjailbr[eo]ak|\bdeveloper mode\b"
    r"|\b(?:assistant|bot|model|ai)\b.{0,20}\b(?:must|shall|should|has to|is to|is required to)\b"
    r"|\b(?:admin\w*|root|superuser|elevated|special|full)\s+(?:right|privilege|permission|access)"
    r"|\b(?:is|are) (?:an? |the )?(?:admin|administrator|superuser|root)(?: of th\w+ \w+)?\W*$"
    r"|\b(?:is|are) (?:allowed|authori[sz]ed|permitted|entitled) to\b",
    re.IGNORECASE,
)


# A weaker server makes words up.
_LASTING = BeforeValidator(lambda word: word if word in ("changes", "wish") else "always")


def _iso(answered: object) -> object:
    """Return an ISO date of a day, a month or a year; "" for anything else."""
    day = answered.strip()[:10] if isinstance(answered, str) else ""
    return day if days_of(day) else ""


def one_word(answered: object) -> str:
    """Return a kind as one short word in lower case, "" for anything else."""
    words = words_of(answered) if isinstance(answered, str) else []
    return words[0][:_MAX_KIND_CHARS] if words else ""


class Statement(BaseModel):
    """One statement of a person."""

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
    lasts: Annotated[Literal["always", "changes", "wish"], _LASTING] = Field(
        "always",
        description='"changes" if it may end within a year or two, as an address, a job, a plan; '
        '"wish" for how they always want to be called or answered',
    )
    kind: Annotated[str, BeforeValidator(one_word)] = Field(
        "", description='What it is about, in one general noun: "restaurant", "expense", "illness"'
    )
    from_day: Annotated[str, BeforeValidator(_iso)] = Field(
        "",
        alias="from",
        description="When it happens or begins: 2026-03-12, 2026-03 or 2026; null if not told",
    )
    to_day: Annotated[str, BeforeValidator(_iso)] = Field(
        "", alias="to", description="Its last day, if it has several"
    )


class Statements(BaseModel):
    """What people said about themselves that stays worth knowing."""

    facts: list[Statement] = Field([], description="Empty when nothing of that kind was said")


def unfit(text: str) -> str:
    """Return why a text (on one line) cannot be a fact; "" if it can."""
    if not text or len(text) > MAX_CHARS:
        return f"a fact has 1 to {MAX_CHARS} characters"
    if _PLANTED.search(text):
        return "orders to the assistant and claims about permissions are not kept as facts"
    return ""


def same_facts(text: str, facts: Iterable[Fact]) -> list[Fact]:
    """Return the facts with the same text; case, spacing and end marks may differ."""
    sought = _normal(text)
    return [fact for fact in facts if _normal(fact.text) == sought]


def entries_of(statements: Iterable[Statement], batch: Batch) -> list[ScopeEntry]:
    """Return what to write for at most 8 statements; those that break a rule are left out."""
    own = {m.seq: m for m in batch.messages if m.role == "user" and m.is_first_party}
    others = [message.text for message in batch.messages if message.seq not in own]
    untrusted = stems("\n".join((*others, *batch.digests.values())))
    untrusted -= stems("\n".join(message.text for message in own.values()))
    known = known_facts(batch.facts, batch.here)
    current = {fact.id: fact for fact in known if fact.is_current}
    entries: list[ScopeEntry] = []
    touched: set[str] = set()
    for statement in statements:
        text, message = one_line(seen_by_people(statement.text)), own.get(statement.message or 0)
        if message is None or unfit(text) or _normal(text) in touched:
            continue
        if (stems(text) - stems(message.text)) & untrusted:
            continue  # a fact with a word that only untrusted text has is not the person's own
        touched.add(_normal(text))
        seq, sender = message.seq, message.sender_id
        source = Source(batch.conversation.tag, seq, batch.here.source_epoch, sender)
        # It does not hold any more, but after an edit the messages that follow it are read again.
        ended = [fact for fact in known if not fact.is_current and source in fact.sources]
        if same_facts(text, ended) or _was_corrected(text, message, current.values()):
            continue
        alike = [*same_facts(text, current.values()), current.get(statement.repeats or 0)]
        repeated = next((each for each in alike if _of_same_person(batch, message, each)), None)
        replaced = _of_same_person(batch, message, current.get(statement.replaces or 0))
        if repeated is not None:
            entries += _again(repeated, text, source, message.sent_at)
            is_settled = repeated.is_pinned or repeated.was_unpinned or repeated.id < 0
            if statement.lasts == "wish" and not is_settled:
                entries.append(Pinned(repeated.id))
        elif replaced is None:
            entries.append(_new(statement, text, source, message))
        elif replaced.said_at <= message.sent_at:  # an older statement replaces nothing
            del current[replaced.id]
            entries.append(_new(statement, text, source, message).in_place_of(replaced))
            entries.append(Ended(replaced.id, message.sent_at, THE_ONE_BEFORE))
        if len(touched) == _MAX_PER_BATCH:
            break
    return entries


def _was_corrected(text: str, message: Message, facts: Iterable[Fact]) -> bool:
    """Return whether a person has since put other words in the place of these.

    What was said before such an edit teaches nothing with a word that the edit took out.
    """
    for fact in facts:
        if message.sent_at <= fact.said_at:
            for wording in fact.replaced:
                gone = stems(wording.text) - stems(fact.text)
                if _normal(text) == _normal(wording.text) or stems(text) & gone:
                    return True
    return False


def _of_same_person(batch: Batch, message: Message, fact: Fact | None) -> Fact | None:
    """Return the fact if a message may end or strengthen it: in a group one of the same person.

    If somebody else contradicts or repeats a fact, both are kept, and the model sees both with
    their dates. So what one person said never rests on the words of another.
    """
    if fact is None or batch.conversation.is_private:
        return fact
    return fact if is_first_party(message.sender_id, senders_of(batch.facts, fact)) else None


def stems(text: str) -> set[str]:
    """Return the stems of the words of a text that have at least four letters."""
    return {word[:_STEM] for word in _WORD.findall(text.casefold())}


def _new(statement: Statement, text: str, source: Source, message: Message) -> Fact:
    """Return a new fact; a lasting wish is pinned, so the model always sees it."""
    return Fact(
        *(0, text, (source,), message.sent_at),
        changes=statement.lasts == "changes",
        is_pinned=statement.lasts == "wish",
        kind=statement.kind,
        from_day=statement.from_day,
        to_day=statement.to_day if statement.from_day < statement.to_day else "",
    )


def _again(fact: Fact, text: str, source: Source, at: float) -> list[ScopeEntry]:
    """Return one more source of a fact, unless the message is one already.

    The source keeps other words, so that the fact has them if the first source is erased.
    """
    known = {(each.tag, each.seq) for each in fact.sources}
    words = "" if _normal(text) == _normal(fact.text) else text
    is_known = (source.tag, source.seq) in known
    return [] if is_known else [Again(fact.id, replace(source, said=words), at)]


def _normal(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(".!… ")


Mode = Literal["auto", "ask", "explicit"]
"""How facts are learned: by itself, after a question for each, or only when a person asks for it.

It is stored where the facts are: for a person, or for a group.
"""
_MAX_OPEN = 3
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True)
class LearningMode(StoredField):
    """How facts of this scope are learned; without the field, by itself ("auto")."""

    PREFIX = "learning_mode"
    mode: Mode

    without = never_erased

    @classmethod
    def read(cls, _: str, stored: str) -> Self:
        """Read a stored mode; one of a newer version learns nothing by itself."""
        return cls(next((mode for mode in MODES if mode == stored), "explicit"))


def mode_in(facts: ScopeMemory) -> Mode:
    """Return how facts of this scope are learned."""
    return (facts.get(LearningMode) or LearningMode("auto")).mode


def due_cards(here: ScopeMemory, facts: ScopeMemory, sender_id: int, now: float) -> list[Remember]:
    """Return the writes that a person is to be asked about below the next answer, oldest first.

    At most three questions of a conversation are open at a time. Each write names its question by
    the nonce and shows the fact that it replaces.
    """
    if mode_in(facts) != "ask":
        return []
    texts = {fact.id: fact.text for fact in known_facts(facts, here)}
    on_the_way = {write.nonce for write in here.waiting_writes}
    questions = [each for each in here.all(WaitingWrite) if each.expires_at > now]
    is_open = [each for each in questions if not each.answer or each.nonce in on_the_way]
    waiting = sorted(
        (each for each in questions if each.answer == UNASKED and each.nonce not in on_the_way),
        key=lambda each: each.expires_at,
    )
    return [
        replace(each.write, nonce=each.nonce, old_text=texts.get(each.write.replaces, ""))
        for each in waiting
        if isinstance(each.write, Remember) and each.write.sender_id == sender_id
    ][: max(0, _MAX_OPEN - len(is_open))]


async def set_mode(scopes: Scopes, conversation: Scope, mode: Mode) -> None:
    """Learn facts so from now on; refuse a learner that has begun. Raise `StoreError`."""
    wanted = Revision(fields=[LearningMode(mode)])
    await scopes.update(
        conversation.facts_scope, lambda facts: None if mode_in(facts) == mode else wanted
    )
