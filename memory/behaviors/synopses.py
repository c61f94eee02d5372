"""`Synopses`: what each earlier session was about (the re-query memory).

A synopsis is written when a session has ended or has become long. The model sees the synopses that
fit a message and those that are like the best one: as a list with dates, or as a narrative.

Vectors alone cannot tell which of a handful of texts are alike, because none stands out. So rare
words, used by few of the texts, decide then.
"""

import asyncio
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256
from itertools import chain, groupby, repeat
from typing import Any, Literal
from weakref import WeakKeyDictionary

import orjson
import structlog
from pydantic import BaseModel, Field

from memory.behaviors.context import CallContext
from memory.behaviors.learning_behavior import PROMPTS, Batch, Learned, LearningBehavior, Unlearned
from memory.message import Message
from memory.scopes.entries import Synopsis
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.scopes.sources import Trust
from memory.search.message_search import SESSION_PAUSE_S
from memory.search.words import FUNCTION_WORDS, languages_of, terms_of, words_of
from memory.store.keys import Scope
from memory.text.internal_model import InternalModel, InternalModelUnavailable
from memory.text.message_lines import dated
from memory.text.tokens import TokenCounter
from memory.text.untrusted_text import UNTRUSTED_MARK, cut, escaped, one_line

log = structlog.get_logger(__name__)

HEADING = "Earlier sessions:"


_FIELD_BYTES = 600
_SESSION_TOKENS = 3_000  # a session that goes on is summed up in pieces of this size

_SHARED_CALL_TOKENS = 2_250
"""A session of this size is summed up too if the model is asked for another behavior anyway."""

_DAY_S = 86_400
_MAX_SHOWN_TOKENS = 600
_MAX_SYNOPSIS_TOKENS, _SHORT_TOKENS = 200, 140  # for the best one; for the others


class SynopsisPart(BaseModel):
    """What a session was about; null for fields with nothing to say."""

    likely_request: str | None = Field(None, description="What was most likely wanted")
    actions: str | None = Field(None, description="What the assistant did, with its tools as well")
    result: str | None = Field(None, description="What came of it; what was left open")
    behaviour: str | None = Field(None, description="How the people behaved, as observed")
    emotions: str | None = Field(None, description="What they felt, as far as they showed it")
    preferences: str | None = Field(None, description="What they prefer, as far as it showed")
    reasoning: str | None = Field(None, description="Why the assistant answered as it did")


class Synopses(LearningBehavior):
    """Keeps a synopsis of each session and shows those that fit what is said.

    `narrative` says whether they become a narrative. "auto": if at least two are found, at most
    once a day. It is for people who come back; within a day the window still holds most of what was
    said. "always": whenever one is found.
    """

    name = "synopses"
    instructions = PROMPTS["synopses"]["instructions"].format(synopses=HEADING)
    part: type[BaseModel] = SynopsisPart
    task = PROMPTS["synopses"]["task"]

    def __init__(
        self,
        scopes: Scopes,
        tokens: TokenCounter,
        model: InternalModel | None,
        narrative: Literal["off", "auto", "always"] = "auto",
    ) -> None:
        self._scopes = scopes
        self._tokens = tokens
        self._narrator: Narrator | None = None
        self._min_synopses, pause_s = (1, 0) if narrative == "always" else (2, _DAY_S)
        if model is not None and narrative != "off":
            self._narrator = Narrator(model, pause_s)

    async def on_model_invoke(
        self, call_context: CallContext, new_messages: Sequence[Message]
    ) -> str:
        """Return a narrative or a dated list of the synopses that are found; "" for none."""
        text = call_context.question(new_messages)
        here = await self._scopes.current(call_context.conversation)
        if not here.synopses:
            return ""
        hits = await self._scopes.search(Synopsis, here, text, _MAX_FOUND)
        direct = [hit.record for hit in hits if not hit.is_related]
        related = [hit.record for hit in hits if hit.is_related]
        if direct and not related:  # the vectors tell nothing, so rare words decide
            recent = here.synopses[-_MAX_COMPARED:]
            others = [synopsis for synopsis in recent if synopsis not in direct]
            texts = [_without_labels(direct[0]), *map(_without_labels, others)]
            related = [others[at - 1] for at in alike(texts)]
        best_first = self._fitting([*direct, *related[:_MAX_RELATED]])
        if not best_first:
            return ""
        synopses = sorted(best_first, key=lambda each: (each.began_at, each.id))
        narrative = ""
        if self._narrator is not None and len(synopses) >= self._min_synopses:
            narrative = await self._narrator.narrate(here, synopses, text, call_context)
        if narrative:
            line = self._tokens.shorten(one_line(narrative), _MAX_SHOWN_TOKENS)
            call_context.used.update({f"s{each.id}": line for each in synopses})
            return f"{HEADING}\n{line}{_mark(synopses)}"
        limits = chain((_MAX_SYNOPSIS_TOKENS,), repeat(_SHORT_TOKENS))
        sized = zip(best_first, limits, strict=False)
        lines = {each.id: self._line(each, most, call_context) for each, most in sized}
        call_context.used.update({f"s{each}": line for each, line in lines.items()})
        return "\n".join((HEADING, *(lines[each.id] for each in synopses)))

    def is_due(self, unlearned: Unlearned) -> bool:
        """Return whether a session has ended or become long."""
        enough = _SHARED_CALL_TOKENS if unlearned.is_shared else _SESSION_TOKENS
        return bool(unlearned.first_session) or unlearned.tokens >= enough

    def due_in(self, unlearned: Unlearned) -> float:
        """Return after how many more quiet seconds the session will have ended."""
        return max(0.0, SESSION_PAUSE_S - unlearned.quiet_s) + 1

    def select_messages(self, unlearned: Unlearned) -> Sequence[Message]:
        """Return the first session, or its first exchanges if it is too long for one synopsis."""
        taken: list[Message] = []
        session = unlearned.messages[: unlearned.first_session or None]
        for _, exchange in groupby(session, key=lambda message: message.exchange):
            more = [*taken, *exchange]
            if taken and sum(message.tokens for message in more) > _SESSION_TOKENS:
                break
            taken = more
        return taken

    def prompt_input(self, batch: Batch) -> str:
        """Return the synopsis of how the same session began, if there is one."""
        if earlier := _continued(batch):
            return f"It goes on from this; do not repeat it:\n{earlier.text}"
        return "(a new session)"

    def learn(self, batch: Batch, answer: SynopsisPart) -> Learned:
        """Return the synopsis, or nothing if all its fields are empty."""
        first, last = batch.messages[0], batch.messages[-1]
        said = {name: cut(one_line(text or ""), _FIELD_BYTES) for name, text in answer}
        earlier = _continued(batch)
        rests_on_untrusted = batch.holds_untrusted
        rests_on_untrusted |= earlier is not None and earlier.trust is Trust.UNTRUSTED
        synopsis = Synopsis(
            id=0,
            **said,
            began_at=first.sent_at,
            ended_at=last.sent_at,
            first_seq=first.seq,
            last_seq=last.seq,
            tag=batch.conversation.tag,
            trust=Trust.UNTRUSTED if rests_on_untrusted else Trust.DERIVED,
        )
        return Learned([synopsis] if synopsis.text else [])

    def _fitting(self, synopses: Iterable[Synopsis]) -> list[Synopsis]:
        left, taken = _MAX_SHOWN_TOKENS, list[Synopsis]()
        for synopsis in synopses:
            most = _SHORT_TOKENS if taken else _MAX_SYNOPSIS_TOKENS
            if (cost := min(self._tokens.count(synopsis.text) + 20, most)) <= left:
                left -= cost
                taken.append(synopsis)
        return taken

    def _line(self, synopsis: Synopsis, max_tokens: int, call_context: CallContext) -> str:
        when = dated(synopsis.began_at, call_context.now, call_context.zone)
        # Behaviour, emotions and preferences are kept: nothing else tells them.
        limit, shown = max_tokens - 20, synopsis
        for field in ("reasoning", "actions", "result"):
            without: dict[str, Any] = {field: ""}
            if self._tokens.count(_on_one_line(shown)) > limit:
                shown = replace(shown, **without)
        text = self._tokens.shorten(_on_one_line(shown), limit)
        return f"[{when}] {text}{_mark([synopsis])}"


def _continued(batch: Batch) -> Synopsis | None:
    last = batch.here.synopses[-1:]
    if last and batch.messages[0].sent_at - last[0].ended_at <= SESSION_PAUSE_S:
        return last[0]
    return None


def _mark(synopses: Iterable[Synopsis]) -> str:
    is_untrusted = any(synopsis.trust is Trust.UNTRUSTED for synopsis in synopses)
    return f" {UNTRUSTED_MARK}" if is_untrusted else ""


def _on_one_line(synopsis: Synopsis) -> str:
    return " ".join(
        line if line.endswith((".", "!", "?", "…")) else f"{line}."
        for line in synopsis.text.splitlines()
    )


_MAX_FOUND = 4
_MAX_RELATED = 2
_MAX_COMPARED = 200
_RARE_SHARE = 4  # a word is rare if at most a quarter of the texts use it (or two of them)


def alike(texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that are like the first one, the most alike first.

    Shared words count by their rarity (idf). A text is alike if it shares at least as much as one
    word that only two of the texts use. Of two texts the result is empty.
    """
    languages = languages_of(words_of(" ".join(texts)), {})
    used = [FUNCTION_WORDS.get(code, ()) for code in languages.values()]
    function_words = frozenset(chain.from_iterable(used))
    terms = [
        frozenset(terms_of([w for w in words_of(text) if w not in function_words], languages))
        for text in texts
    ]
    uses = Counter(chain.from_iterable(terms))
    max_uses = max(2, len(texts) // _RARE_SHARE)
    rarity = {term: math.log(len(texts) / n) for term, n in uses.items() if 1 < n <= max_uses}
    shared = {
        at: sum(rarity.get(term, 0.0) for term in of_text & terms[0])
        for at, of_text in enumerate(terms[1:], start=1)
    }
    enough = math.log(len(texts) / 2) if len(texts) > 2 else math.inf
    near = [at for at, score in shared.items() if score >= enough]
    return sorted(near, key=lambda at: -shared[at])


def _without_labels(synopsis: Synopsis) -> str:
    return " ".join(line.partition(": ")[2] for line in synopsis.text.splitlines())


_NARRATE = PROMPTS["synopses"]["narrative"]
_TIME_LIMIT_S = 4.0
_MAX_TOKENS = 400
_MAX_QUESTION_CHARS = 2_000
_MAX_CACHED, _MAX_NOTED = 16, 4_096  # narratives of a scope; scopes with a narrative


class Narrator:
    """Writes narratives and keeps the newest of a scope, for the same synopses and the same words.

    They go when the process drops what it has read of the scope, so no erased word stays in them.
    A turn waits for a narrative, and most messages find some synopses. So a scope gets a new one
    after `pause_s` at the earliest.
    """

    def __init__(self, model: InternalModel, pause_s: float = 0) -> None:
        self._model = model
        self._pause_s = pause_s
        self._cached = WeakKeyDictionary[ScopeMemory, dict[tuple[tuple[int, ...], str], str]]()
        self._made_at: dict[tuple[Scope, tuple[str, str]], float] = {}  # the newest of each scope

    async def narrate(
        self, scope_memory: ScopeMemory, synopses: Sequence[Synopsis], text: str, call: CallContext
    ) -> str:
        """Return what these synopses, sorted by time, hold for a person's words; "" for nothing."""
        ids, said = tuple(each.id for each in synopses), sha256(text.encode()).hexdigest()
        here, now = (scope_memory.scope, scope_memory.version), call.now
        cached = self._cached.get(scope_memory, {})
        if known := cached.get((ids, said)):
            return known
        if here in self._made_at and now - self._made_at[here] < self._pause_s:
            return ""
        lines = [orjson.dumps({"said": escaped(text[:_MAX_QUESTION_CHARS])}).decode()]
        for each in synopses:
            day = dated(each.began_at, now, call.zone)
            lines.append(orjson.dumps({"on": day, "memory": escaped(each.text)}).decode())
        try:
            async with asyncio.timeout(_TIME_LIMIT_S):
                answer = await self._model.write(_NARRATE, "\n".join(lines), _MAX_TOKENS)
        except (InternalModelUnavailable, TimeoutError) as error:
            log.info("no narrative", reason=type(error).__name__)
            return ""
        if narrative := answer.strip():
            newest = [*cached.items(), ((ids, said), narrative)][-_MAX_CACHED:]
            self._cached[scope_memory] = dict(newest)
            self._made_at.pop(here, None)
            self._made_at = dict([*self._made_at.items(), (here, now)][-_MAX_NOTED:])
        return narrative
