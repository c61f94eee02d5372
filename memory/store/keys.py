"""The names of all Redis keys, and of scopes.

All keys begin with the id of the bot, so that bots may share a Redis. All keys of one scope have
the same hash tag, so that one script can use them together and a Cluster shards by scope.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple
from urllib.parse import quote, urlencode
from zlib import crc32


class ScopeKeys(NamedTuple):
    """The keys of one scope that scripts take, in their order; the defaults say how they end."""

    meta: str = "meta"
    lease: str = "lease"
    turn: str = "turn"
    mailbox: str = "mailbox"
    seen: str = "seen"
    log: str = "log"
    vectors: str = "vec"
    confirm: str = "confirm"
    learned: str = "learned"
    records: str = "records"
    record_vectors: str = "rvec"
    dead_letters: str = "dead_letters"
    work: str = "reminders"  # as in the first release
    off_record: str = "off_record"
    albums: str = "albums"


KEY_SUFFIXES = ScopeKeys()  # how these keys end; scripts name them by that

SHARDS = 16  # the number of sorted sets into which each index is split
TAG_FIELD = "c"  # the field of a wake-up that names the conversation


@dataclass(frozen=True, slots=True, order=True)
class Scope:
    """What anything is stored under; `tag` is its hash tag.

    `c:<chat>:<topic>` is a conversation. `u:<user>` is a person: what was learned of them in their
    private chat. `d:<namespace>` is the operator's documents. `k:<keys>` is a conversation outside
    Telegram. All have the same keys; only conversations have a mailbox.
    """

    tag: str

    @classmethod
    def of_chat(cls, chat_id: int, topic_id: int = 0) -> "Scope":
        """Return the conversation of a Telegram chat; `topic_id` is 0 outside topics."""
        return cls(f"c:{chat_id}:{topic_id}")

    @classmethod
    def of_person(cls, user_id: int) -> "Scope":
        """Return the scope of one person, across the topics of their private chat."""
        return cls(f"u:{user_id}")

    @classmethod
    def of_namespace(cls, namespace: str) -> "Scope":
        """Return the scope of documents that the operator gives to everybody."""
        return cls(f"d:{quote(namespace)}")

    @classmethod
    def of_keys(cls, context_keys: Mapping[str, object]) -> "Scope":
        """Return the conversation of context keys in any order; raise `ValueError` without keys."""
        if not context_keys:
            raise ValueError("context keys must not be empty: they would name every chat at once")
        keys = {name: str(value) for name, value in context_keys.items()}
        if keys.keys() <= {"chat_id", "topic_id"} and "chat_id" in keys:
            return cls.of_chat(int(keys["chat_id"]), int(keys.get("topic_id", 0)))
        return cls("k:" + urlencode(sorted(keys.items())))

    @property
    def chat_id(self) -> int:
        """Telegram's chat id; 0 if this is not a chat."""
        return int(self.tag.split(":")[1]) if self.tag.startswith("c:") else 0

    @property
    def topic_id(self) -> int:
        """Telegram's topic id; 0 outside topics."""
        return int(self.tag.split(":")[2]) if self.tag.startswith("c:") else 0

    @property
    def facts_scope(self) -> "Scope":
        """Where facts are stored: in private chats the person's scope, else this one."""
        return Scope.of_person(self.chat_id) if self.is_private else self

    @property
    def is_conversation(self) -> bool:
        """Whether this is a conversation, with messages of its own."""
        return self.tag[:2] not in ("u:", "d:")

    @property
    def is_person(self) -> bool:
        """Whether this is what was learned of a person in their private chat."""
        return self.tag.startswith("u:")

    @property
    def is_private(self) -> bool:
        """Whether this is a private chat; groups have negative ids."""
        return self.chat_id > 0


class Keys:
    """The names of one bot's keys."""

    def __init__(self, bot_id: int) -> None:
        self.prefix = f"r:{bot_id}:"
        self.ready_queue = self.prefix + "ready"
        self.jobs = self.prefix + "jobs"
        self.due = self.prefix + "due"
        self.learning = self.prefix + "learning"
        self.work = self.prefix + "reminders"  # the name that the first release gave it
        self.off_record = self.prefix + "off_record"
        self.poller = self.prefix + "poller"  # the lease of the process that polls Telegram
        self.sweeper = self.prefix + "sweeper"  # of the one that walks the indexes every minute
        self.dead_letters = self.prefix + "dead_letters"
        self.capacity = self.prefix + "capacity"
        self.ballast = self.prefix + "ballast"
        self.admins = self.prefix + "admins"
        self.models = self.prefix + "models"
        self.erased = self.prefix + "erased"
        self.erasures = self.prefix + "erasures"
        self.erasure_secrets = self.prefix + "erasure_secrets"
        self.signals = self.prefix + "signals"
        self.looks = self.prefix + "looks"
        self.reloads = self.prefix + "reloads"
        self.layout = self.prefix + "layout"
        # The indexes by last activity, each in several parts.
        self.conversations = [f"{self.prefix}conversations:{shard}" for shard in range(SHARDS)]
        self.scopes = [f"{self.prefix}scopes:{shard}" for shard in range(SHARDS)]
        self._usage = self.prefix + "{usage}:"
        self.noted_calls = self._usage + "noted"
        self._access = self.prefix + "{access}:"

    def scope(self, scope: Scope) -> ScopeKeys:
        """Return the keys of a scope."""
        base = self.base(scope)
        return ScopeKeys(*(base + word for word in KEY_SUFFIXES))

    def base(self, scope: Scope) -> str:
        """Return what all keys of a scope begin with."""
        return f"{self.prefix}{{{scope.tag}}}:"

    def restoring(self, scope: Scope, run: str, name: str) -> str:
        """Name the key under which a restore collects one key of a scope, until all is there."""
        return f"{self.base(scope)}{run}:restoring_{name}"

    def learner(self, conversation: Scope) -> str:
        """Name the lease of the process that learns from a conversation."""
        return f"{self.base(conversation)}learner"

    def index_of(self, scope: Scope) -> str:
        """Name the shard of the index that a scope belongs to."""
        shards = self.conversations if scope.is_conversation else self.scopes
        return shards[crc32(scope.tag.encode()) % SHARDS]

    def person(self, user_id: int | Literal["*"]) -> str:
        """Name the hash of the conversations in which a person wrote; `*` is any person."""
        return f"{self.prefix}{{u:{user_id}}}:conversations"

    def person_epoch(self, user_id: int) -> str:
        """Name the key with the last update up to which a person is forgotten."""
        return f"{self.prefix}{{u:{user_id}}}:epoch"

    def usage(self, *names: str | int) -> str:
        """Name what is counted of the use of models; all of it shares one slot.

        `<month>, <name>`: sums of billed tokens. `turns, <person>`: their turns that were admitted
        recently. `refused, <person>`: the refused turn that tells them about the quota. Both also
        for `<group>, <member>`. `spent, <day>, <person>`: the tokens of their quota on a day,
        counted from 1970; with a conversation before the person: messages learned again for them.
        """
        return self._usage + ":".join(map(str, names))

    def access(self, name: str) -> str:
        """Name a part of what is stored of who may use the bot; all of it shares one slot."""
        return self._access + name

    def of_feature(self, name: str, part: str) -> str:
        """Name a part of what a feature stores for the whole bot; all of it shares one slot."""
        return f"{self.prefix}{{{name}}}:{part}"

    def topic_name(self, topic: Scope) -> str:
        """Name the key that says who named a topic."""
        return f"{self.base(topic)}topic_name"

    def send_rate(self, chat_id: int) -> str:
        """Name the send rate of a chat."""
        return f"{self.prefix}send_rate:{chat_id}"

    def job(self, job_id: str, part: Literal["record", "lease"] = "record") -> str:
        """Name the record or the lease of a job."""
        return f"{self.prefix}{{j:{job_id}}}:{part}"
