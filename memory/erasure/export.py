"""Exports one conversation as a JSON file for its people.

It contains the messages and what was learned from them; in a private chat also the facts of the
person. Vectors are left out, because they can be computed from the texts.
"""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import starmap

import orjson

from memory.behaviors.behavior_store import BehaviorState, stored_by_behaviors
from memory.behaviors.tool_output import OutgoingFile
from memory.documents import Chunk, documents
from memory.message import Message
from memory.scopes.changes import former_wordings
from memory.scopes.entries import Fact, Synopsis
from memory.scopes.fact_lists import fact_scopes, with_shown_id
from memory.scopes.log import message_of, seq_of
from memory.scopes.scope_memory import ScopeMemory
from memory.scopes.scopes import Scopes
from memory.store.keys import Scope
from memory.store.store import stream_entries
from memory.store.tasks import in_turns
from memory.work.item import WorkItem
from memory.work.items import WorkItems

MAX_BYTES = 8 * 2**20  # bytes of a file, so that sending it takes less time than a lease

_INDENTED = orjson.OPT_INDENT_2


@dataclass(frozen=True, slots=True)
class Export(OutgoingFile):
    """A file with an export."""

    left_out: int = 0  # the oldest messages, which did not fit


ExportPart = Callable[[Scope, ScopeMemory], Awaitable[Mapping[str, object]]]
"""Returns what a feature stores of a conversation, from it and the scope of its facts."""


class Exporter:
    """Makes exports of the present content; the files are not stored."""

    def __init__(self, scopes: Scopes) -> None:
        self._client = scopes.store.client
        self._keys = scopes.store.keys
        self._scopes = scopes
        self._work = WorkItems(scopes.store)
        self.parts: list[ExportPart] = []  # of features
        self.shown_kinds: set[str] = set()  # of work whose open items these parts show

    async def export(self, conversation: Scope, max_bytes: int = MAX_BYTES) -> Export:
        """Return all that was learned and the newest messages that fit; raise `StoreError`."""
        here = await self._scopes.read(conversation)
        facts = await self._scopes.read(conversation.facts_scope)
        known = ((each, fact) for each in fact_scopes(facts, here) for fact in each.facts)
        states = (*here.all(BehaviorState), *facts.all(BehaviorState))
        learned = {
            "running_state": orjson.loads(here.state) if here.state else None,
            "facts": await in_turns(starmap(_fact, known)),
            "synopses": await in_turns(map(_synopsis, here.synopses)),
            "documents": _documents(here),
            "kept_by_behaviors": stored_by_behaviors(here),
            "states_of_behaviors": {each.behavior: each.text for each in states},
        }
        for part in self.parts:
            learned |= await part(conversation, facts)
        learned["work"] = [
            _work(each)
            for is_open in (True, False)
            for each in await self._work.list_open(conversation, is_open=is_open)
            if not (is_open and each.kind in self.shown_kinds)
        ]
        room = max_bytes - len(orjson.dumps(learned, option=_INDENTED))
        kept, left_out = await self._newest(self._keys.scope(conversation).log, room)
        now = datetime.now(UTC)
        about = {"exported_at": now.isoformat(timespec="seconds"), "scope": conversation.tag}
        content = orjson.dumps({**about, "messages": kept, **learned}, option=_INDENTED)
        return Export(f"memory-{now:%Y-%m-%d}.json", content, left_out=left_out)

    async def _newest(self, log: str, room: int) -> tuple[Sequence[dict[str, object]], int]:
        """Return the newest messages that fit into `room` bytes, in order; count the others."""
        kept: list[dict[str, object]] = []
        async for entry, fields in stream_entries(self._client, log, newest_first=True):
            message = _message(message_of(seq_of(entry), fields))
            room -= len(orjson.dumps([message], option=_INDENTED)) * 5 // 4  # one level deeper
            if room < 0:
                return kept[::-1], await self._client.call("XLEN", log) - len(kept)
            kept.append(message)
        return kept[::-1], 0


def _message(message: Message) -> dict[str, object]:
    return {
        "number": message.seq,
        "role": message.role,
        "name": message.sender_name,
        "sent_at": moment(message.sent_at),
        "text": message.text,
        "own_words": message.is_first_party,
        "refused": message.is_refused,
        "forwarded_from": message.forwarded_from or None,
        "forwarded_at": moment(message.forwarded_at) if message.forwarded_at else None,
        "photo": message.photo or None,
        "album": message.album or None,
    }


def _fact(facts: ScopeMemory, fact: Fact) -> dict[str, object]:
    former = [(each.text, each.replaced_at) for each in fact.replaced]
    # An ended fact does not repeat what it replaced: those facts are in the file themselves.
    if fact.is_current:
        former = former_wordings(facts, fact)
    fact = with_shown_id(facts.scope, fact)
    return {
        "id": fact.id,
        "text": fact.text,
        "said_at": moment(fact.said_at),
        "confirmed_at": moment(fact.confirmed_at) if fact.confirmed_at else None,
        "ended_at": moment(fact.ended_at) if fact.ended_at else None,
        "replaced_by": fact.replaced_by or None,
        "kind": fact.kind or None,
        "from": fact.from_day or None,
        "to": fact.to_day or None,
        "replaced": [{"text": text, "until": moment(until)} for text, until in former],
        "trust": fact.trust.name.lower(),
        "sources": [{"scope": source.tag, "message": source.seq} for source in fact.sources],
    }


def _synopsis(synopsis: Synopsis) -> dict[str, object]:
    return {
        "id": synopsis.id,
        "began_at": moment(synopsis.began_at),
        "ended_at": moment(synopsis.ended_at),
        "messages": [synopsis.first_seq, synopsis.last_seq],
        "text": synopsis.text,
    }


def _work(item: WorkItem) -> dict[str, object]:
    return {
        "kind": item.kind,
        "text": item.text,
        "due": moment(item.due) if item.is_open else None,
        "at": item.at or None,
        "cron": item.rule or None,
        "time_zone": item.zone or None,
        "is_task": item.is_task,
    }


def _documents(here: ScopeMemory) -> list[dict[str, object]]:
    passages = defaultdict[str, list[Mapping[str, object]]](list)
    for chunk in here.of_kind(Chunk):
        said_at = moment(chunk.said_at) if chunk.said_at else None
        passage = {"place": chunk.place, "said_at": said_at, "text": chunk.text}
        passages[chunk.document].append(passage)
    return [
        {
            "name": document.title,
            "link": document.link,
            "added_at": moment(document.added_at),
            "imported_from": document.imported_from or None,
            "passages": passages[key],
        }
        for key, document in documents(here).items()
    ]


def moment(at: float) -> str:
    """Return a time in Unix seconds as an export has it."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
