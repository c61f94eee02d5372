"""Builds all services of this package for one bot. Done once, in the composition root."""

import sys
from dataclasses import dataclass
from datetime import UTC, tzinfo
from functools import partial

from memory.erasure.correcting import Correcting
from memory.erasure.export import Exporter
from memory.erasure.forgetting import Forgetting, MemorySwitch
from memory.erasure.jobs import Jobs
from memory.erasure.questions import Questions
from memory.learning.learner import ConversationLearner
from memory.learning.tool_writes import ToolWriter
from memory.learning.vectors import VectorLearner
from memory.limits.capacity import CapacityMonitor
from memory.limits.quotas import Quotas
from memory.limits.usage import UsageStore
from memory.queue.dead_letters import DeadLetters
from memory.queue.mailbox import Mailbox
from memory.queue.ready_queue import ReadyQueue, Sweep
from memory.queue.turn_store import TurnStore, TurnTimes
from memory.scopes.history import Histories
from memory.scopes.scopes import Scopes
from memory.search.embeddings import Embedder, QuestionVectors
from memory.store.client import RedisClient
from memory.store.keys import Keys
from memory.store.store import Scripts, Store, take_layout
from memory.text.tokens import TokenCounter
from memory.work.items import WorkItems


@dataclass(frozen=True, slots=True)
class MemoryOptions:
    """How much is remembered, for how long, and how turns are timed."""

    ttl_s: int  # a scope expires after so long without activity
    tail: int  # how many of the newest messages are read with a turn
    cache_bytes: int
    times: TurnTimes
    redis_bytes: int = 0  # memory of Redis, if the server does not tell it; 0: unknown
    wait_replicas: int = 0  # how many must have an update before it counts as taken
    zone: tzinfo = UTC  # in which the days of memories are counted
    conversation_bytes: int = sys.maxsize  # of each conversation's messages in the cache
    shares_groups: bool = True  # one member of a group may not use up its messages


class Memory:
    """The services of one bot's memory, as attributes; other classes get the ones they use."""

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
        self.take_layout = partial(take_layout, client, self.keys)
        self.store = Store(client, self.keys, self.scripts, options.ttl_s)
        self.tokens = tokens
        self.mailbox = Mailbox(self.store, options.wait_replicas)
        self.usage = UsageStore(self.store)
        self.capacity = CapacityMonitor(self.store, options.redis_bytes)
        self.turns = TurnStore(self.store, options.times, options.tail, self.usage)
        self.turns.room = self.capacity.room
        self.questions = Questions(self.store)
        self.sweep = Sweep(self.store, self.mailbox, options.times.lease_ms)
        self.dead_letters = DeadLetters(self.store, self.mailbox, options.times.lease_ms)
        self.quotas = Quotas(self.store, shares_groups=options.shares_groups)
        self.scopes = Scopes(
            self.store,
            QuestionVectors(embedder),
            max_bytes=options.cache_bytes,
            conversation_bytes=options.conversation_bytes,
            zone=options.zone,
        )
        self.work = WorkItems(self.store)
        self.correcting = Correcting(self.scopes)
        self.forgetting = Forgetting(self.store, self.scopes, self.mailbox, options.tail)
        self.jobs = Jobs(self.store, self.mailbox, self.forgetting, self.usage)
        self.switch = MemorySwitch(self.store)
        self.exporter = Exporter(self.scopes)
        self.histories = Histories(self.scopes, tokens, self.scopes.question_vectors, options.tail)
        self.tool_writer = ToolWriter(self.scopes, self.correcting)
        vectors = VectorLearner(self.scopes, embedder) if embedder else None
        self.learner = ConversationLearner(
            self.histories, self.tool_writer, vectors, self.turns.learning_due
        )
        self.learn, self.enable_learning = self.learner.learn, self.learner.enable

    def ready_queue(self) -> ReadyQueue:
        """Return a new consumer of the wake-ups of conversations."""
        return ReadyQueue(self.client, self.scripts, self.keys.ready_queue)
