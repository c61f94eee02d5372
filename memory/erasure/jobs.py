"""Erasures that walk many conversations: forgetting a person, clearing on an admin's word.

A job has its own record and lease, resumes after a crash, and never erases its own record. Every
step keeps a receipt where it happened, so that repeating it counts the same; the record keeps that
of the whole, which can be told again without walking.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from secrets import token_hex
from typing import Literal, Protocol

from memory.limits.usage import UsageStore
from memory.queue.mailbox import SEEN_MS, Mailbox
from memory.scopes.changes import Receipt
from memory.store.client import Arg
from memory.store.keys import SHARDS, Scope
from memory.store.store import Store

_RECORD_S = 7 * 86400
_LEASE_MS = 30_000

Kind = Literal["forget", "chat", "all"]


@dataclass(frozen=True, slots=True)
class Job:
    """What was confirmed: `target` is a user id, a chat id, or empty for all.

    `cut_update` is the confirming update and `cut_at` its time (Unix seconds): what came later
    stays. `report` says where the receipt goes, in the bot's own words.
    """

    id: str
    kind: Kind
    target: int
    cut_update: int
    cut_at: float
    report: bytes


@dataclass(frozen=True, slots=True)
class Finished:
    """A job that has walked everything: how many conversations it touched and what it took."""

    job: Job
    conversations: int
    receipt: Receipt

    @classmethod
    def of(cls, job: Job, written: bytes) -> "Finished":
        """Read what a job's record keeps."""
        conversations, _, receipt = written.partition(b"|")
        return cls(job, int(conversations), Receipt.of(receipt))

    @property
    def written(self) -> str:
        """Return the form in which the record keeps it."""
        return f"{self.conversations}|{self.receipt.written}"


class JobBusy(Exception):  # noqa: N818 - says when
    """Raised when another worker has the job."""


class Shares(Protocol):
    """Erases what one person said among others."""

    async def erase_share(
        self, group: Scope, person: int, until: float, receipt_id: str
    ) -> Receipt:
        """Erase it, with all that rests on it; a repeat answers the same receipt."""
        ...


Deleting = Callable[[Scope], Awaitable[None]]
"""Hears of a conversation that is about to be erased."""


class Jobs:
    """Starts jobs and runs them to their end."""

    def __init__(self, store: Store, mailbox: Mailbox, shares: Shares, usage: UsageStore) -> None:
        self._client = store.client
        self._keys = store.keys
        self._scripts = store.scripts
        self._tell_erased = store.tell_erased
        self._ttl_s = store.ttl_s
        self._mailbox = mailbox
        self._shares = shares
        self._usage = usage

    async def start(self, job: Job) -> bool:
        """Store a job and ring for it; false when this confirmation started it before.

        One that is done tells its receipt again.
        """
        record = self._keys.job(job.id)
        known = await self._client.call("EXISTS", record)
        if known:
            await self._client.call("HDEL", record, "reported")
        else:
            fields: tuple[Arg, ...] = ("kind", job.kind, "target", job.target)
            fields += ("cut", job.cut_update, "cut_at", job.cut_at, "report", job.report)
            await self._client.pipeline([("HSET", record, *fields), ("EXPIRE", record, _RECORD_S)])
        await self._client.call("XADD", self._keys.jobs, "*", "c", job.id)
        return not known

    async def run(self, job_id: str, deleting: Deleting | None = None) -> Finished | None:
        """Carry a job out, once; `None` when it was reported before; raise `JobBusy`.

        `deleting` is awaited before a conversation is erased whole.
        """
        fields = await self._client.call("HGETALL", self._keys.job(job_id))
        if not fields or b"reported" in fields:
            return None
        job = Job(
            id=job_id,
            kind=fields[b"kind"].decode(),
            target=int(fields[b"target"]),
            cut_update=int(fields[b"cut"]),
            cut_at=float(fields[b"cut_at"]),
            report=fields[b"report"],
        )
        if b"finished" in fields:
            return Finished.of(job, fields[b"finished"])
        token = token_hex(16)
        receipts = {
            name.decode(): Receipt.of(counts) for name, counts in fields.items() if b":" in name
        }
        async for conversation, receipt in self._walk(job, token, deleting):
            receipts[conversation.tag] = receipt
        if job.kind == "forget":
            own = (Scope(tag) for tag in receipts)
            await self._usage.forget(job.target, [each for each in own if each.is_private])
        conversations = sum(Scope(tag).is_conversation for tag in receipts)
        finished = Finished(job, conversations, sum(receipts.values(), Receipt()))
        await self._client.call("HSET", self._keys.job(job_id), "finished", finished.written)
        await self._scripts["unlease"]([self._keys.job_lease(job_id)], {"token": token})
        return finished

    async def mark_reported(self, job_id: str) -> None:
        """Remember that the receipt was delivered, or cannot be."""
        await self._client.call("HSET", self._keys.job(job_id), "reported", 1)

    async def _walk(
        self, job: Job, token: str, deleting: Deleting | None
    ) -> AsyncIterator[tuple[Scope, Receipt]]:
        if job.kind == "forget":
            epoch = self._keys.person_epoch(job.target)
            await self._scripts["forget_until"]([epoch], (job.cut_update, SEEN_MS))
        async for conversation, fingerprint in self._conversations(job):
            lease = self._keys.job_lease(job.id)
            if not await self._scripts["lease"]([lease], {"token": token, "ttl_ms": _LEASE_MS}):
                raise JobBusy(job.id)
            if job.kind == "forget" and not (conversation.is_private or conversation.is_person):
                receipt = await self._erase_person(conversation, job)
            else:
                if deleting is not None and conversation.is_conversation:
                    await deleting(conversation)
                receipt = await self._wipe(conversation, job)
            await self._tell_erased(conversation)
            if receipt.left:
                await self._mailbox.wake(conversation)
            if job.kind == "forget":
                await self._leave(conversation, fingerprint, job, receipt)
            yield conversation, receipt

    async def _leave(
        self, conversation: Scope, fingerprint: bytes, job: Job, receipt: Receipt
    ) -> None:
        """Note the receipt, then drop the person's index entry if nothing newer rests on it."""
        await self._client.call("HSET", self._keys.job(job.id), conversation.tag, receipt.written)
        person = self._keys.person(job.target)
        oldest_ms = int(job.cut_at * 1000) - SEEN_MS
        arguments = (conversation.tag, fingerprint, job.cut_update, oldest_ms)
        await self._scripts["drop_unless_newer"]([person], arguments)

    async def _conversations(self, job: Job) -> AsyncIterator[tuple[Scope, bytes]]:
        """Give what a job erases: conversations, then what was learned of persons from them.

        In this order, so that nobody can learn it again. An operator's documents are nobody's.
        """
        if job.kind == "forget":
            spoken_in = await self._client.call("HGETALL", self._keys.person(job.target))
            for tag, fingerprint in spoken_in.items():
                yield Scope(tag.decode()), fingerprint
            yield Scope.of_person(job.target), b""
            return
        # A group that moved is found by either of its chats, and erased where it is stored.
        chat = await self._mailbox.resolve(Scope.of_chat(job.target))
        for shard in range(SHARDS):
            for tag in await self._client.call("ZRANGE", self._keys.conversations(shard), 0, -1):
                conversation = Scope(tag.decode())
                if job.kind == "all" or conversation.chat_id in (job.target, chat.chat_id):
                    yield await self._mailbox.resolve(conversation), b""
        person = Scope.of_person(job.target)
        for shard in range(SHARDS):
            for tag in await self._client.call("ZRANGE", self._keys.scopes(shard), 0, -1):
                scope = Scope(tag.decode())
                if scope.is_person and (job.kind == "all" or scope == person):
                    yield scope, b""

    async def _wipe(self, conversation: Scope, job: Job) -> Receipt:
        keys = self._keys.conversation(conversation).all
        arguments = (job.id, job.cut_update, self._ttl_s, job.cut_at)
        return Receipt.of(await self._scripts["wipe"](keys, arguments))

    async def _erase_person(self, group: Scope, job: Job) -> Receipt:
        """Erase one person's share of a group.

        First what waits and what is being answered, so that nothing of it can still reach the log;
        then what was said, with all that rests on it.
        """
        keys = self._keys.conversation(group)
        arguments = (f"{job.id}:waiting", job.target, job.cut_update)
        waiting = Receipt.of(await self._scripts["erase_person"](keys.all, arguments))
        said = await self._shares.erase_share(group, job.target, job.cut_at, f"{job.id}:said")
        return Receipt(said.messages, said.vectors, waiting.waiting, said.left, said.records)
