"""Puts the rooms of this package together on one Redis, for one bot.

Built once, in the composition root.
"""

import asyncio
from dataclasses import dataclass

from memory.cache import ConversationCache
from memory.embeddings import Embedder
from memory.history import HistoryParts
from memory.keys import Conversation, Keys
from memory.learning import learn_vectors
from memory.protocol.doorbell import Doorbell
from memory.protocol.erasure import Erasure
from memory.protocol.jobs import Jobs
from memory.protocol.leases import NamedLease
from memory.protocol.mailbox import Mailbox
from memory.protocol.scripts import Scripts
from memory.protocol.sweep import Sweep
from memory.protocol.turns import TurnStore, TurnTimes
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How much is remembered, for how long, and how turns are timed."""

    ttl_s: int
    tail: int
    cache_bytes: int
    times: TurnTimes


class Memory:
    """Everything a bot remembers with: mailbox, turns, erasure, jobs, histories.

    `erased` is set whenever this process has erased something, for whoever cleans up behind it.
    """

    def __init__(
        self,
        client: RedisClient,
        bot_id: int,
        tokens: TokenCounter,
        embedder: Embedder | None,
        options: MemoryOptions,
    ) -> None:
        self.client = client
        self.keys = Keys(bot_id)
        self.scripts = Scripts(client)
        self.cache = ConversationCache(options.cache_bytes)
        self.erased = asyncio.Event()
        ttl_s = options.ttl_s
        self.mailbox = Mailbox(client, self.keys, self.scripts, ttl_s)
        self.turns = TurnStore(
            client, self.keys, self.scripts, options.times, ttl_s=ttl_s, tail=options.tail
        )
        self.erasure = Erasure(
            client, self.keys, self.scripts, self.mailbox, self.erased, ttl_s=ttl_s
        )
        self.jobs = Jobs(client, self.keys, self.scripts, self.mailbox, self.erased, ttl_s=ttl_s)
        self.sweep = Sweep(client, self.keys, self.scripts, self.mailbox, ttl_s=ttl_s)
        self._embedder = embedder
        self.histories = HistoryParts(
            client=client,
            keys=self.keys,
            scripts=self.scripts,
            cache=self.cache,
            tokens=tokens,
            embedder=embedder,
            erased=self.erased,
            ttl_s=ttl_s,
            tail=options.tail,
        )

    def doorbell(self) -> Doorbell:
        """Return a new ear at the bells of conversations with mail."""
        return Doorbell(self.client, self.scripts, self.keys.doorbell)

    def job_bell(self) -> Doorbell:
        """Return a new ear at the bells of jobs."""
        return Doorbell(self.client, self.scripts, self.keys.jobs)

    def poller_lease(self, ttl_ms: int) -> NamedLease:
        """Return this process's claim on being the one that polls Telegram."""
        return NamedLease(self.scripts, self.keys.poller, ttl_ms)

    async def learn(self, conversation: Conversation) -> int:
        """Embed what has no vector yet; return how many messages. Raise `EmbeddingsUnavailable`.

        The note that this was to be done goes when all is done and nothing came meanwhile.
        """
        noted = await self.client.call("ZSCORE", self.keys.learning, conversation.tag)
        learned = 0
        if self._embedder is not None:
            learned = await learn_vectors(self.histories, self._embedder, conversation)
        if noted is not None:
            arguments = (conversation.tag, f"{noted:.0f}")
            await self.scripts["take_due"]([self.keys.learning], arguments)
        return learned
