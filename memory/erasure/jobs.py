"""Erasures of many conversations: forgetting a person, or a clear by an administrator.

A job has its own record and lease. It resumes after a crash and never erases its own record. Each
step stores a receipt in its scope, so a repeated step counts the same. The record stores the sum,
so a finished job can report again without erasing.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Self

from memory.erasure.forgetting import Forgetting
from memory.limits.usage import UsageStore
from memory.queue.mailbox import SEEN_MS, Mailbox
from memory.scopes.changes import Receipt
from memory.store.keys import Scope
from memory.store.store import JOBS, NamedLease, Store, pages_of_scopes

_RECORD_S = 7 * 86400
_LEASE_MS = 30_000

JobKind = Literal["forget", "chat", "all"]


@dataclass(frozen=True, slots=True)
class Job:
    """A confirmed erasure. Messages after the confirming update stay."""

    id: str
    kind: JobKind
    target: int  # a user id, a chat id, or 0 for all
    cut_update: int  # the confirming update ...
    cut_at: float  # ... and its time (Unix seconds)
    report: bytes  # where the receipt goes, in a form that only the bot reads

    @classmethod
    def of_stored(cls, id_: str, fields: Mapping[bytes, bytes]) -> Self:
        """Read the record of a job."""
        kind: Any = fields[b"kind"].decode()
        cut = int(fields[b"cut"]), float(fields[b"cut_at"])
        return cls(id_, kind, int(fields[b"target"]), *cut, fields[b"report"])

    def clears(self, scope: Scope, stored_in: int) -> bool:
        """Return whether a clear erases a scope; `stored_in` is the chat where `target` is stored.

        Documents of the operator stay.
        """
        if scope.is_conversation:
            return self.kind == "all" or scope.chat_id in (self.target, stored_in)
        return scope.is_person and (self.kind == "all" or scope == Scope.of_person(self.target))


@dataclass(frozen=True, slots=True)
class FinishedJob:
    """A finished job: how many conversations it erased from, and the counts."""

    job: Job
    conversations: int
    receipt: Receipt


BeforeErasure = Callable[[Scope], Awaitable[None]]
"""Called with a conversation before it is erased."""


@dataclass(slots=True, eq=False)
class Jobs:
    """Starts jobs and runs them to their end."""

    store: Store
    mailbox: Mailbox
    forgetting: Forgetting
    usage: UsageStore
    # Those of features: each erases with a job what its feature stores outside of scopes.
    forgets: list[Callable[[Job], Awaitable[None]]] = field(default_factory=list, init=False)

    async def start_job(self, job: Job) -> bool:
        """Store a job and wake a worker; return False if this confirmation started it before.

        A finished job reports its receipt again.
        """
        fields = ["kind", job.kind, "target", str(job.target), "cut", str(job.cut_update)]
        fields += ["cut_at", repr(job.cut_at), "report", job.report.decode()]
        request = {"fields": fields, "ttl_s": _RECORD_S}
        is_new = await self.store.scripts["start_job"]([self.store.keys.job(job.id)], request)
        await self.store.client.call("XADD", self.store.keys.jobs, "*", "c", job.id)
        await self.store.note(JOBS)
        return bool(is_new)

    async def run_job(self, job_id: str, before: BeforeErasure | None = None) -> FinishedJob | None:
        """Carry out a job once; return None if it was reported before.

        `before` is awaited before a whole conversation is erased. Raise `LeaseLost` if another
        worker runs the job.
        """
        fields = await self.store.client.call("HGETALL", self.store.keys.job(job_id))
        if not fields or b"reported" in fields:
            return None
        job = Job.of_stored(job_id, fields)
        if b"finished" in fields:
            count, _, receipt = fields[b"finished"].partition(b"|")
            return FinishedJob(job, int(count), Receipt.of(receipt))
        lease = self.store.lease(self.store.keys.job(job_id, "lease"), _LEASE_MS)
        receipts = {
            name.decode(): Receipt.of(counts) for name, counts in fields.items() if b":" in name
        }
        async for conversation, erased in self._erase_each(job, lease, before):
            receipts[conversation.tag] = erased
        if job.kind == "forget":
            await self.store.journal.note_person(job.target, job.cut_at)
            own = (Scope(tag) for tag in receipts)
            await self.usage.forget(job.target, [each for each in own if each.is_private])
        for forget in self.forgets:
            await forget(job)
        self.store.erased.set()  # the file may have been rewritten before the last steps
        conversations = sum(Scope(tag).is_conversation for tag in receipts)
        counts = sum(receipts.values(), Receipt())
        await self._note(job_id, "finished", f"{conversations}|{counts.written}")
        await lease.release()
        return FinishedJob(job, conversations, counts)

    async def mark_reported(self, job_id: str) -> None:
        """Store that the receipt was delivered or cannot be delivered."""
        await self._note(job_id, "reported", "1")

    async def _note(self, job_id: str, name: str, value: str) -> None:
        """Set a field of a record, which may have expired meanwhile: so it expires again."""
        record = self.store.keys.job(job_id)
        commands = [("HSET", record, name, value), ("EXPIRE", record, _RECORD_S)]
        await self.store.client.pipeline(commands)

    async def _erase_each(
        self, job: Job, lease: NamedLease, before: BeforeErasure | None
    ) -> AsyncIterator[tuple[Scope, Receipt]]:
        store, keys = self.store, self.store.keys
        if job.kind == "forget":
            until = {"last_update": str(job.cut_update), "ttl_ms": SEEN_MS}
            await store.scripts["forget_until"]([keys.person_epoch(job.target)], until)
            await store.journal.note_person(job.target, job.cut_at)
        async for conversation, stored in self._conversations(job):
            await lease.renew()
            if job.kind == "forget" and not (conversation.is_private or conversation.is_person):
                receipt = await self._erase_person(conversation, job)
            else:
                if before is not None and conversation.is_conversation:
                    await before(conversation)
                if conversation.topic_id:
                    await store.client.call("DEL", keys.topic_name(conversation))
                cut = (str(job.cut_update), job.cut_at)
                receipt = await self.forgetting.scopes.wipe(conversation, job.id, *cut)
                if conversation.is_private:  # what is being learned may be the person's first fact
                    await self.forgetting.scopes.cut(conversation.facts_scope, conversation)
            if receipt.left:
                await self.mailbox.wake(conversation)
            if job.kind == "forget":
                # First the receipt. The conversation stays in the person's index if its entry
                # differs from `stored`, or if the conversation noted a newer update.
                tag, name = conversation.tag, f"newest:{job.target}"
                await store.client.call("HSET", keys.job(job.id), tag, receipt.written)
                [newest] = await store.read_meta(conversation, name)
                request = {
                    "conversation": tag,
                    "last_update": str(job.cut_update),
                    "oldest_ms": int(job.cut_at * 1000) - SEEN_MS,
                    "newest": (newest or b"").decode(),
                }
                await store.scripts["drop_unless_newer"]([keys.person(job.target)], request, stored)
            yield conversation, receipt

    async def _conversations(self, job: Job) -> AsyncIterator[tuple[Scope, bytes]]:
        """Yield each scope that a job erases, with its entry in the person's index.

        Conversations come first and persons last, so that nothing is learned again from what goes.
        """
        if job.kind == "forget":
            spoken_in = await self.store.client.call("HGETALL", self.store.keys.person(job.target))
            for tag, stored in spoken_in.items():
                yield Scope(tag.decode()), stored
            yield Scope.of_person(job.target), b""
            return
        # A group that moved is found by either chat id and erased where it is stored.
        chat = await self.mailbox.resolve(Scope.of_chat(job.target))
        async for page in pages_of_scopes(self.store.client, self.store.keys):
            for scope in page:
                if job.clears(scope, chat.chat_id):
                    yield await self.mailbox.resolve(scope) if scope.is_conversation else scope, b""

    async def _erase_person(self, group: Scope, job: Job) -> Receipt:
        """Erase a person's share of a group: first what waits, so that nothing reaches the log."""
        cut = {"last_update": str(job.cut_update), "until": job.cut_at}
        request = {"receipt": f"{job.id}:waiting", "person": str(job.target), **cut}
        waiting = Receipt.of(await self.store.run("erase_person", group, request))
        await self.store.client.call("ZREM", self.store.keys.looks, group.tag)
        said = await self.forgetting.erase_share(group, job.target, job.cut_at, f"{job.id}:said")
        return Receipt(said.messages, said.vectors, waiting.waiting, said.left, said.records)
