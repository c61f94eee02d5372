"""`UserFacts`: short statements about a person, or in groups about the group and its people.

Facts are learned from the people's own messages after replies. The model sees those that
people have pinned and those that fit what is being said. A contradicted fact is stored with its
end. Then only a list of all facts of a kind shows it, with that end.
"""

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, tzinfo
from itertools import islice
from secrets import token_urlsafe

import orjson
from pydantic import BaseModel

from memory.behaviors.context import CallContext
from memory.behaviors.fact_tools import fact_tools
from memory.behaviors.learning_behavior import PROMPTS, Batch, Cadence, Learned, LearningBehavior
from memory.behaviors.statements import Statements, due_cards, entries_of, stems
from memory.message import Message
from memory.scopes.entries import Fact
from memory.scopes.fact_lists import (
    fact_scopes,
    known_facts,
    listed,
    named_kinds,
    of_time,
    when_of,
    with_shown_id,
)
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.writes import StillTrue, ToolWrite
from memory.search.question import asks_for_all
from memory.text.message_lines import dated
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import one_line

HEADING = "Facts, by id and since when they are known:"
ALWAYS = "Facts that always count:"
"""Stands above pinned facts. People pin them, and so does learning for lasting wishes."""

LISTED = "All known facts of that kind by date, also ended ones:"
"""Stands above a list that a question asks for."""


_MAX_UNSEARCHED = 8  # up to this many facts are shown without a search

_MAX_SHOWN_TOKENS = 400
_MAX_LISTED_TOKENS = 800
_KINDS_FOUND = 2
"""A list has the kinds that a question names, and those of so many of the best facts for it."""

_MAX_INPUT_TOKENS = 1_000
_MAX_FOUND = 8
_MAX_FOUND_FOR_BATCH = 20
_MAX_QUESTION_CHARS = 2_000


class UserFacts(LearningBehavior):
    """Keeps facts of a person for all topics of their private chat, and facts of a group in it."""

    name = "facts"
    instructions = PROMPTS["facts"]["instructions"].format(facts=HEADING, always=ALWAYS)
    part: type[BaseModel] = Statements
    task = PROMPTS["facts"]["task"]
    is_personal = True

    def __init__(
        self, scopes: Scopes, tokens: TokenCounter, cadence: Cadence | None = None
    ) -> None:
        self._scopes = scopes
        self._tokens = tokens
        self.cadence = cadence or Cadence()
        self.functions = fact_tools(scopes)

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return the facts that fit the new messages, or all if they are few; "" for none.

        A question for a list also gets all facts of its kind, by date.
        """
        scope_memory = await self._scopes.current(call_context.conversation.facts_scope)
        here = await self._scopes.current(call_context.conversation)
        known = known_facts(scope_memory, here)
        facts = [fact for fact in known if fact.is_current]
        question = call_context.question(new_messages)
        asks_all, found = asks_for_all(question), list[Fact]()
        if len(facts) > _MAX_UNSEARCHED or asks_all:
            found = await self._search(scope_memory, here, question)
        of_kinds = self._listed(known, found, question, call_context.zone) if asks_all else {}
        call_context.used.update({f"f{id_}": line for id_, line in of_kinds.items()})
        if len(facts) <= _MAX_UNSEARCHED:
            found = facts
        pinned = {fact.id: fact for fact in reversed(facts) if fact.is_pinned}
        first = pinned | {fact.id: fact for fact in found}  # of many pins the newest come first
        facts = [each for each in first.values() if each.is_pinned or each.id not in of_kinds]
        some = facts[:_MAX_SHOWN_TOKENS]  # a line takes a token or more
        lines = {self._line(each, call_context): each.id for each in some}
        fitting = self._fitting(lines, _MAX_SHOWN_TOKENS)
        call_context.used.update({f"f{lines[line]}": line for line in fitting})
        if call_context.writes is not None:  # what the person may be asked with the answer
            asker, now = call_context.speaker.id, call_context.now
            call_context.writes.extend(due_cards(here, scope_memory, asker, now))
            asks_already = any(isinstance(write, StillTrue) for write in here.waiting_writes)
            if here.scope.is_private and not asks_already:
                call_context.writes.extend(to_confirm(scope_memory, asker, now))
        fitting.sort(key=lambda line: (lines[line] < 0, abs(lines[line])))
        always = [line for line in fitting if lines[line] in pinned]
        others = [line for line in fitting if lines[line] not in pinned]
        sections = ((ALWAYS, always), (LISTED, of_kinds.values()), (HEADING, others))
        return "\n".join(text for heading, few in sections if few for text in (heading, *few))

    def _listed(
        self, known: Sequence[Fact], found: Sequence[Fact], question: str, zone: tzinfo
    ) -> dict[int, str]:
        """Return the lines of all facts of the kinds that a question asks for, by id and date."""
        kinds = named_kinds(question, known)
        kinds |= {fact.kind for fact in found[:_KINDS_FOUND] if fact.kind}
        asked = of_time((fact for fact in known if fact.kind in kinds), zone)
        lines = {listed(each, zone): each.id for each in asked[-_MAX_LISTED_TOKENS:]}
        newest = set(self._fitting(reversed(lines), _MAX_LISTED_TOKENS))
        return {id_: line for line, id_ in lines.items() if line in newest}

    async def _search(self, facts: ScopeMemory, here: ScopeMemory, question: str) -> list[Fact]:
        """Return the facts that fit the question, best first; those that only resemble follow."""
        found = [
            (hit.is_related, -hit.score, with_shown_id(each.scope, hit.record))
            for each in fact_scopes(facts, here)
            if each.facts
            for hit in await self._scopes.search(Fact, each, question, _MAX_FOUND)
        ]
        return [fact for *_, fact in sorted(found, key=lambda hit: hit[:2])]

    def prompt_input(self, batch: Batch) -> str:
        """Return the facts that the messages may repeat or contradict, one JSON object a line."""
        said = " ".join(m.text for m in batch.messages if m.role == "user")
        zone = self._scopes.zone_of(batch.facts.scope)
        hits = batch.facts.search(
            Fact, said[:_MAX_QUESTION_CHARS], None, _MAX_FOUND_FOR_BATCH, zone
        )
        known = reversed(known_facts(batch.facts, batch.here))
        newest = (fact for fact in known if fact.is_current)
        nearest_first = {fact.id: fact for fact in (*(hit.record for hit in hits), *newest)}
        lines = []
        for fact in nearest_first.values():
            since = datetime.fromtimestamp(fact.said_at, zone).strftime("%Y-%m-%d")
            lines.append(orjson.dumps({"id": fact.id, "since": since, "fact": fact.text}).decode())
        return "\n".join(self._fitting(lines, _MAX_INPUT_TOKENS)) or "(no facts are known yet)"

    def learn(self, batch: Batch, answer: Statements) -> Learned:
        """Return new facts, repetitions and ends; statements that break the rules are ignored."""
        return Learned(entries_of(answer.facts, batch))

    def _line(self, fact: Fact, call_context: CallContext) -> str:
        """Return a fact as the model sees it; how often it was said only if more than once."""
        said = len(fact.sources)
        often = f", said {said} times" if said > 1 else ""
        when = f"; {when_of(fact)}" if when_of(fact) else ""
        dates = f"{dated(fact.said_at, call_context.now, call_context.zone)}{often}{when}"
        return f"#{fact.id} [{dates}] {one_line(fact.text)}"

    def _fitting(self, lines: Iterable[str], max_tokens: int) -> list[str]:
        """Return the lines that fit into `max_tokens`; earlier lines are taken first."""
        taken: list[str] = []
        # A line takes a token or more, and there may be thousands of lines.
        for line in islice(lines, max_tokens):
            cost = self._tokens.count(f"{line}\n")
            if cost <= max_tokens:
                max_tokens -= cost
                taken.append(line)
        return taken


_DAY_S = 86_400
_OLD_S = 180 * _DAY_S
_AGAIN_S = 30 * _DAY_S  # after this time a question that nobody answered may be asked once more
_NONCE_BYTES = 12


def to_confirm(facts: ScopeMemory, sender_id: int, now: float) -> list[StillTrue]:
    """Return a question for each fact that has aged, oldest first; none within a day of another."""
    if any(fact.asked_at > now - _DAY_S for fact in facts.facts):
        return []
    aged = [
        fact
        for fact in facts.facts
        if fact.is_current and fact.changes and fact.asked_at < now - _AGAIN_S
        if _known_since(fact) < now - _OLD_S
    ]
    return [
        StillTrue(
            fact.id, sender_id=sender_id, nonce=token_urlsafe(_NONCE_BYTES), old_text=fact.text
        )
        for fact in sorted(aged, key=_known_since)
    ]


def question_for(writes: Iterable[ToolWrite], used: Collection[str], said: str) -> list[StillTrue]:
    """Return at most one of the questions: about a fact that stood in the prompt.

    `used` has the codes of what stood there (`CallContext.used`). `said` is the message with its
    answer, which has a word of the fact. Few facts are all shown, so being shown is not enough.
    """
    words = stems(said)
    asked = [
        write
        for write in writes
        if isinstance(write, StillTrue)
        and f"f{write.record_id}" in used
        and not words.isdisjoint(stems(write.old_text))
    ]
    return asked[:1]


def _known_since(fact: Fact) -> float:
    return max(fact.said_at, fact.confirmed_at)
