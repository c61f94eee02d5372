"""The steps of a turn in Redis, from `acquire` to `commit`. Each step is one script.

After `acquire` a step names its lease and, except `hand_over`, the versions under which the
conversation was loaded. A worker whose step is refused drops the turn and does not acknowledge the
wake-up. A signal tells a process at once that something happened to a turn that it runs.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import chain
from secrets import token_hex
from time import time
from typing import NamedTuple

import orjson
import structlog

from memory.limits.usage import UsageStore
from memory.message import Message
from memory.queue.open_turn import Closing, Committed, Lease, NoTurn, OpenTurn, begun_turn
from memory.scopes.log import Cursor, Delta, stored_fields
from memory.store.client import RedisClient
from memory.store.commands import Command, ScriptCall
from memory.store.errors import StoreError, StoreFull
from memory.store.keys import Scope
from memory.store.store import Store
from memory.work.items import first_looks

log = structlog.get_logger(__name__)

_MIN_CONNECTIONS = 3  # one waits for work and one for signals; at least one must be left
_PAUSE_S = 1.0
RENEWALS = 3  # how often a lease and its wake-up are renewed within the time of one lease
LEARN_LATE_S = 31
"""Seconds after a commit; if nothing was learned from it by then, any process may do so.

This is one second more than the default of `LEARN_AFTER_S`. So if the round of learning after a
commit finds nothing due yet, the due time that the commit stored is close enough and stays.
"""


class Signals:
    """The signals of all conversations that this process works on.

    A signal may be lost, so it only names a conversation. The process looks at the open turn and
    the mailbox after a signal, and also when it renews the lease or stores the reply.
    """

    def __init__(self, client: RedisClient, channel: str) -> None:
        self._client = client
        self._channel = channel
        self._events: dict[str, list[asyncio.Event]] = {}

    @contextmanager
    def heard(self, conversation: Scope) -> Iterator[asyncio.Event]:
        """Give an event that is set at each signal for this conversation while the block lasts."""
        event = asyncio.Event()
        events = self._events.setdefault(conversation.tag, [])
        events.append(event)
        try:
            yield event
        finally:
            events.remove(event)
            if not events:
                del self._events[conversation.tag]

    async def listen(self) -> None:
        """Listen until cancelled, over one connection; return at once if none can be spared."""
        if self._client.max_connections < _MIN_CONNECTIONS:
            return
        while True:
            try:
                async for tag in self._client.messages(self._channel):
                    # b"" stands for all conversations, because signals may have been lost.
                    heard = [self._events.get(tag.decode(), [])] if tag else self._events.values()
                    for event in chain.from_iterable(heard):
                        event.set()
            except StoreError as error:
                log.warning("signals not heard", reason=type(error).__name__)
            await asyncio.sleep(_PAUSE_S)


class TurnTimes(NamedTuple):
    """How long leases last and how soon messages must follow to be answered together, in ms."""

    lease_ms: int = 30_000
    # A message joins a turn if it comes at most so long after the turn's newest message, and ...
    coalesce_ms: int = 500
    max_coalesce_ms: int = 2_000  # ... after its oldest one, and if no part of the reply is shown


class TurnStore:
    """Runs the steps of turns. A turn writes only through these."""

    def __init__(self, store: Store, times: TurnTimes, tail: int, usage: UsageStore) -> None:
        self._store = store
        self._times = times
        self.lease_s = times.lease_ms / 1000
        self._tail = tail  # how many of the newest messages a turn loads
        self._usage = usage
        # Unix seconds at which learning is due after commits of this process, for conversations
        # whose memory it has in full. `ConversationLearner.learn` takes them out.
        self.learning_due: dict[Scope, float] = {}
        self.room: Callable[[], int] = lambda: 2**24  # most bytes of an outbox with files
        # They report at once what `renew` and `write_outbox` would find later.
        self.signals = Signals(store.client, store.keys.signals)

    async def acquire(
        self, conversation: Scope, cursor: Cursor, token: str = "", wake_up: str = ""
    ) -> OpenTurn | NoTurn:
        """Take the lease, begin the next turn and load what is newer than `cursor`.

        With a `token` the caller has the lease already and begins its turn again, together with the
        messages that followed. `wake_up` is the delivery that the caller serves.
        """
        request = {"nonce": token_hex(16), "wake_up": wake_up, **self._begin_fields(cursor)}
        if token:
            request["token"] = token
        calls = [self._store.call("acquire", conversation, request)]
        if (person := conversation.facts_scope) != conversation:  # a private chat
            facts_request = {"cursor": (cursor.facts or Cursor()).of_records, "max": self._tail}
            calls.append(self._store.call("read_scope", person, facts_request))
        asked_at = asyncio.get_running_loop().time()
        answer, *facts = await self._store.client.pipeline(calls)
        begun = begun_turn(conversation, answer, asked_at)
        if isinstance(begun, NoTurn) and begun.why == "parked":
            # We were woken up too early: the clock of another process is ahead.
            await self._store.client.call(*self._wake_up(conversation, begun.wait_ms))
        if facts and isinstance(begun, OpenTurn):
            return replace(begun, facts=Delta.of(facts[0]))
        return begun

    async def renew(self, turn: OpenTurn) -> None:
        """Extend the lease; raise `LeaseLost`, or `Interrupted` if the run has to end."""
        asked_at = asyncio.get_running_loop().time()
        [answer] = await self._store.client.pipeline([self._run_step("renew", turn)])
        turn.lease.check(answer)
        turn.run.renewed_at = asked_at

    async def write_outbox(
        self, turn: OpenTurn, outbox: bytes, questions: Mapping[str, str] | None = None
    ) -> None:
        """Store the reply and its `questions`, with the first part marked as being sent.

        The same round trip counts the tokens that were billed for it. On a Cluster this would take
        a second round trip, so the calls stay held there. Raise as `renew` does.
        """
        client, usage = self._store.client, self._usage
        asked = {"questions": questions} if questions else {}
        step = self._run_step("outbox", turn, outbox, **asked)
        calls = [] if client.is_cluster else usage.release(turn.lease.conversation.tag)
        try:
            *_, answer = await client.pipeline([*usage.counting(calls), step])
        except BaseException:
            for call in calls:
                usage.hold(call)
            raise
        turn.lease.check(answer)

    async def mark_sending(self, turn: OpenTurn, part: int, sent: Sequence[int]) -> None:
        """Mark a part as being sent, and the parts before it as sent under these message ids.

        If that is refused, raise `Superseded` if the last of them must stay, because it counts as
        sent or may count. Otherwise raise `LeaseLost`, as `QuestionErased` if the question is gone.
        """
        marks = {"turn": turn.id, "part": part, "sent": ",".join(map(str, sent))}
        request = {**turn.lease.named, "lease_ms": self._times.lease_ms, **marks}
        turn.lease.check(await self._store.run("sending", turn.lease.conversation, request))

    async def park(self, turn: OpenTurn, pause_ms: int) -> None:
        """Give the lease back and let the turn wait for `pause_ms`; raise `LeaseLost`.

        A parked turn keeps its scope. The pause is half of a scope's life at most, so that a long
        ban does not outlive the turn.
        """
        turn.run.is_giving_back = True
        ttl_s = self._store.ttl_s
        pause_ms = min(pause_ms, ttl_s * 1000 // 2)
        request = {**turn.lease.named, "pause_ms": pause_ms, "ttl_s": ttl_s}
        turn.lease.check(await self._give_back(turn.lease, pause_ms, "park", request))

    async def note_failure(self, turn: OpenTurn, error: str) -> None:
        """Count a failure with the class of its error; give the lease back unless it is lost."""
        request = {**turn.lease.named, "turn": turn.id, "error": error}
        await self._store.run("failed", turn.lease.conversation, request)

    async def hand_over(self, lease: Lease, pause_ms: int | None = None) -> None:
        """Give back the lease of an unfinished turn, if not lost; the attempt does not count.

        With a pause, the conversation is woken up after it, or earlier.
        """
        if pause_ms is None:
            await self._store.run("hand_over", lease.conversation, {"token": lease.token})
        else:
            await self._give_back(lease, pause_ms, "hand_over", {"token": lease.token})

    async def commit(
        self,
        turn: OpenTurn,
        messages: Sequence[Message],
        cursor: Cursor,
        *,
        closing: Closing | None = None,
    ) -> Committed:
        """Close a turn, append its messages, begin the next one; raise as `mark_sending` does."""
        closing, lease, store = closing or Closing(), turn.lease, self._store
        asked = closing.fields
        request = {
            **lease.named,
            "turn": turn.id,
            "taken": [str(entry.update_id) for entry in turn.entries],
            "messages": [stored_fields(message) for message in messages],
            **asked,
            **self._begin_fields(cursor),
        }
        commit = store.call("commit", lease.conversation, request, closing.writes)
        turn.run.is_giving_back = True
        due = time() + LEARN_LATE_S
        noted: list[Command] = []
        if (messages or closing.ends_session) and closing.uses_memory:
            # There is something to learn. A note without a commit does no harm, so it goes first.
            noted = [("ZADD", store.keys.learning, due, lease.conversation.tag)]
        looks, cancelled = list[Command](), list[str]()
        if work := asked.get("work"):
            added, cancelled = work
            looks = first_looks(store.keys.work, lease.conversation, added, store.client.now())
            for id_ in cancelled:
                await store.journal.note_work(lease.conversation, id_)  # no restore brings it back
        asked_at = asyncio.get_running_loop().time()
        # `looks` put items into the index: first, so that after a crash none is missing there, and
        # once more, because another process may have looked too early and removed the entry. They
        # go first alone, because a full Redis refuses them but not the commit, which frees memory.
        if looks:
            await store.client.pipeline(looks)
        try:
            answers = await store.client.pipeline([*noted, commit, *looks])
        except StoreFull:  # the commit may have taken place: its repeat changes nothing
            answers = await store.client.pipeline([commit])
            with suppress(StoreFull):
                await store.client.pipeline(noted)
            noted = []
        if cancelled:
            store.erased.set()  # the embedded server rewrites its file
        head, *begun = answers[len(noted)]
        answer = orjson.loads(head)
        if answer["outcome"] != "committed":
            lease.check(answer["outcome"].encode())
        if noted and "is_known" in answer:  # this process has all that was learned here
            self.learning_due[lease.conversation] = due
        then = begun_turn(lease.conversation, begun[0], asked_at)
        return Committed(answer["exchange"], answer["first_seq"], then, messages)

    async def _give_back(
        self, lease: Lease, pause_ms: int, script: str, request: Mapping[str, object]
    ) -> bytes:
        """Give the lease back by this script, and wake the conversation up after `pause_ms`.

        The wake-up is scheduled before, because a crash in between must not lose it. It is
        scheduled again after, because until then it finds the lease held and starts nothing. The
        times differ, because a process that has seen the first one removes it, perhaps late.
        """
        wake_up, again = (self._wake_up(lease.conversation, pause_ms + ms) for ms in (0, 1))
        index = self._store.indexing(lease.conversation)
        step = self._store.call(script, lease.conversation, request)
        *_, answer, _ = await self._store.client.pipeline([wake_up, index, step, again])
        return bytes(answer)

    def _wake_up(self, conversation: Scope, pause_ms: int) -> Command:
        return "ZADD", self._store.keys.due, int(time() * 1000) + pause_ms, conversation.tag

    def _begin_fields(self, cursor: Cursor) -> dict[str, object]:
        """Return the fields of a request that `lua/shared/begin.lua` reads."""
        return {
            **self._times._asdict(),
            "ttl_s": self._store.ttl_s,
            "tail": self._tail,
            "cursor": cursor.request,
        }

    def _run_step(self, name: str, turn: OpenTurn, *opaque: bytes, **asked: object) -> ScriptCall:
        """Return a step that may answer that the run has to end (`lua/shared/interrupt.lua`)."""
        request = {**turn.lease.named, "turn": turn.id, **self._times._asdict(), **asked}
        if turn.run.shown is not None:
            request["is_shown"] = True
        if turn.is_stopped:
            request["is_stopped"] = True
        if asyncio.get_running_loop().time() - turn.run.renewed_at < self.lease_s / RENEWALS:
            request["is_fresh"] = True
        return self._store.call(name, turn.lease.conversation, request, *opaque)
