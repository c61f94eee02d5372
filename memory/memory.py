"""Puts the rooms of this package together on one Redis, for one bot.

Built once, in the composition root.
"""

import asyncio
from dataclasses import dataclass

from memory.cache import ConversationCache
from memory.correcting import Correcting
from memory.embeddings import Embedder, QuestionVectors
from memory.export import Exporter
from memory.forgetting import Forgetting
from memory.history import HistoryParts
from memory.keys import Conversation, Keys
from memory.learning.consent import Consent
from memory.learning.learner import ConversationLearner, Progress, Teaching
from memory.learning.vectors import VectorLearner
from memory.notebook.notebooks import Notebooks
from memory.occasion import facts_scope
from memory.plan.keeper import PlanKeeper
from memory.protocol.dead_letters import DeadLetters
from memory.protocol.doorbell import Doorbell
from memory.protocol.erasure import Erasure
from memory.protocol.jobs import Jobs
from memory.protocol.leases import NamedLease
from memory.protocol.mailbox import Mailbox
from memory.protocol.paces import Paces
from memory.protocol.rations import Rations
from memory.protocol.scripts import Scripts
from memory.protocol.store import Store
from memory.protocol.sweep import Sweep
from memory.protocol.switch import MemorySwitch
from memory.protocol.turns import Known, TurnStore, TurnTimes
from memory.protocol.usage import UsageStore
from memory.redis_client import RedisClient
from memory.tokens import TokenCounter

_PAGE = 1_000
_NOTEBOOKS_SHARE = 4
"""Notebooks get a quarter of the cache, conversations the rest."""


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How much is remembered, for how long, and how turns are timed.

    `redis_bytes` is the size of the Redis plan where the server does not tell it; 0 is unknown.
    `wait_replicas` must have an update before it counts as taken.
    """

    ttl_s: int
    tail: int
    cache_bytes: int
    times: TurnTimes
    redis_bytes: int = 0
    wait_replicas: int = 0


class Memory:
    """Everything a bot remembers with: mailbox, turns, erasure, jobs, histories, notebooks.

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
        self.erased = asyncio.Event()
        self.store = Store(client, self.keys, self.scripts, self.erased, options.ttl_s)
        self.tokens = tokens
        self.mailbox = Mailbox(self.store, options.wait_replicas)
        self.usage = UsageStore(client, self.keys, self.scripts)
        self.turns = TurnStore(self.store, options.times, options.tail, self.usage)
        self.erasure = Erasure(self.store, self.mailbox)
        self.sweep = Sweep(self.store, self.mailbox, options.times.lease_ms)
        self.dead_letters = DeadLetters(self.store, self.mailbox, options.times.lease_ms)
        self.rations = Rations(self.store)
        self.paces = Paces(self.store)
        notebooks_bytes = options.cache_bytes // _NOTEBOOKS_SHARE
        self.cache = ConversationCache(options.cache_bytes - notebooks_bytes)
        self._questions = questions = QuestionVectors(embedder)
        self.notebooks = Notebooks(self.store, questions, most_bytes=notebooks_bytes)
        self._erased_until = b"-"
        self.correcting = Correcting(self.store, self.notebooks)
        self.forgetting = Forgetting(self.store, self.notebooks, self.erasure, options.tail)
        self.jobs = Jobs(self.store, self.mailbox, self.forgetting, self.usage)
        self.switch = MemorySwitch(self.store)
        self.exporter = Exporter(self.store, self.notebooks)
        self.histories = HistoryParts(
            store=self.store,
            cache=self.cache,
            notebooks=self.notebooks,
            tokens=tokens,
            questions=questions,
            tail=options.tail,
        )
        self.plan = PlanKeeper(self.store, options.redis_bytes, options.tail)
        self._vectors = VectorLearner(self.store, embedder) if embedder else None
        self.teach(Teaching())

    def teach(self, teaching: Teaching) -> None:
        """Let behaviors learn from now on; before this only vectors are learned."""
        self._learner = ConversationLearner(
            self.store, self.notebooks, self.tokens, self._vectors, teaching
        )
        self.consent = Consent(self.store, self.notebooks, self.correcting, teaching.with_domain)
        self.plan.wait_for(teaching.behaviors)

    async def drop_erased(self) -> None:
        """Drop what this process holds of scopes in which any process has erased something.

        Looks at what was told since the last look; raise `StoreError`.
        """
        stream = self.keys.erased
        while told := await self.client.call(
            *("XRANGE", stream, self._erased_until, "+", "COUNT", _PAGE)
        ):
            for _, fields in told:
                scope = Conversation(fields[b"c"].decode())
                self.cache.drop(scope)
                self.notebooks.drop(scope)
            self._questions.forget()
            self._erased_until = b"(" + told[-1][0]

    def doorbell(self) -> Doorbell:
        """Return a new ear at the bells of conversations with mail."""
        return Doorbell(self.client, self.scripts, self.keys.doorbell)

    def job_bell(self) -> Doorbell:
        """Return a new ear at the bells of jobs."""
        return Doorbell(self.client, self.scripts, self.keys.jobs)

    def poller_lease(self, ttl_ms: int) -> NamedLease:
        """Return this process's claim on being the one that polls Telegram."""
        return NamedLease(self.scripts, self.keys.poller, ttl_ms)

    def sweeper_lease(self, ttl_ms: int) -> NamedLease:
        """Return this process's claim on being the one that walks the indexes again and again."""
        return NamedLease(self.scripts, self.keys.sweeper, ttl_ms)

    def known(self, conversation: Conversation) -> Known:
        """Return what a turn of a conversation need not read again."""
        said, learned = self.cache.known(conversation), self.notebooks.known(conversation)
        facts = self.notebooks.known(facts_scope(conversation))
        return Known(said.seq, said.vector_seq, learned.record, learned.record_vector, facts)

    async def learn(self, conversation: Conversation) -> Progress:
        """Learn what is due.

        Raise `LearnerBusy`, `EmbeddingsUnavailable` or `InternalModelUnavailable`.
        """
        return await self._learner.learn(conversation)
